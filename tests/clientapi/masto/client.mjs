// A day of a user of masto.js, as it is, and all that it was answered: `node client.mjs SITE TOKEN FILE`. Each answer is
// written to the file with the type that masto.js gives it, for `tsc` to hold it against.

import { readFileSync, writeFileSync } from "node:fs";

import { createRestAPIClient, createStreamingAPIClient } from "masto";

const [site, accessToken, file] = process.argv.slice(2);
const { v1, v2 } = createRestAPIClient({ url: site, accessToken });
const answers = [];

async function note(type, answer) {
  const value = await answer;
  answers.push({ type, value });
  return value;
}

const instance = await note("mastodon.v2.Instance", v2.instance.fetch());
await note("mastodon.v1.Instance", v1.instance.fetch());
await note("mastodon.v1.Rule[]", v1.instance.rules.list());
await note("mastodon.v1.ExtendedDescription", v1.instance.extendedDescription.fetch());
const me = await note("mastodon.v1.AccountCredentials", v1.accounts.verifyCredentials());
const bob = await note("mastodon.v1.Account", v1.accounts.lookup({ acct: "bob" }));
await note("mastodon.v1.Account", v1.accounts.$select(bob.id).fetch());
await note("mastodon.v1.Relationship", v1.accounts.$select(bob.id).follow());
await note("mastodon.v1.Relationship[]", v1.accounts.relationships.fetch({ id: [bob.id, me.id] }));
await note("mastodon.v1.Account[]", v1.accounts.$select(bob.id).followers.list());
await note("mastodon.v1.Account[]", v1.accounts.search.list({ q: "bob" }));
await note("mastodon.v1.AccountCredentials", v1.accounts.updateCredentials({ displayName: "Ann", note: "Hello" }));

// What happens, as it happens
const streaming = createStreamingAPIClient({
  streamingApiUrl: process.argv[5] || instance.configuration.urls.streaming,
  accessToken,
});
const events = [];
const home = streaming.user.subscribe();
const tag = streaming.hashtag.subscribe({ tag: "cats" });
async function listen(subscription) {
  for await (const event of subscription) events.push(event);
}
const direct = streaming.direct.subscribe();
const listening = [listen(home), listen(tag), listen(direct)];
await streaming.prepare();
await new Promise((done) => setTimeout(done, 300)); // the protocol acknowledges no subscription, so nothing else can be waited for

// Writing
const picture = new Blob([readFileSync(new URL("picture.jpg", `file://${file}`))], { type: "image/jpeg" });
const medium = await note("mastodon.v1.MediaAttachment", v2.media.create({ file: picture, description: "a square" }));
await note("mastodon.v1.MediaAttachment", v1.media.$select(medium.id).update({ description: "a blue square", focus: "0.5,-0.5" }));
const post = await note(
  "mastodon.v1.Status",
  v1.statuses.create({ status: "Look, @bob: #cats https://example.org/", mediaIds: [medium.id], spoilerText: "cats" }),
);
const status = v1.statuses.$select(post.id);
const answer = await note("mastodon.v1.Status", v1.statuses.create({ status: "Yes", inReplyToId: post.id }));
await note("mastodon.v1.StatusSource", status.source.fetch());
await note("mastodon.v1.Status", status.update({ status: "Look again: #cats", mediaIds: [medium.id] }));
await note("mastodon.v1.StatusEdit[]", status.history.list());
for (const act of ["favourite", "bookmark", "reblog"]) await note("mastodon.v1.Status", status[act]());
await note("mastodon.v1.Account[]", status.favouritedBy.list());
await note("mastodon.v1.Account[]", status.rebloggedBy.list());
await note("mastodon.v1.Context", status.context.fetch());

// Quoting
const [said] = await v1.accounts.$select(bob.id).statuses.list();
const quote = await note("mastodon.v1.Status", v1.statuses.create({ status: "Look", quotedStatusId: said.id, quoteApprovalPolicy: "followers" }));
if (quote.quote.quotedStatus.id !== said.id) throw new Error(`no quote in ${JSON.stringify(quote)}`);
await note("mastodon.v1.Status", v1.statuses.create({ status: "Again", quotedStatusId: quote.id }));
await note("mastodon.v1.Status[]", v1.statuses.$select(said.id).quotes.list());

// Later
const scheduledAt = new Date(Date.now() + 3_600_000).toISOString();
const later = await note("mastodon.v1.ScheduledStatus", v1.statuses.create({ status: "Later", scheduledAt }));
await note("mastodon.v1.ScheduledStatus[]", v1.scheduledStatuses.list());
await note("mastodon.v1.ScheduledStatus", v1.scheduledStatuses.$select(later.id).update({ scheduledAt }));
await v1.scheduledStatuses.$select(later.id).remove();

// Reading
await note("mastodon.v1.Status[]", v1.timelines.home.list({ limit: 10 }));
await note("mastodon.v1.Status[]", v1.timelines.public.list({ local: true }));
await note("mastodon.v1.Status[]", v1.timelines.tag.$select("cats").list());
await note("mastodon.v1.Status[]", v1.accounts.$select(me.id).statuses.list());
await note("mastodon.v1.Status[]", v1.bookmarks.list());
await note("mastodon.v1.Status[]", v1.favourites.list());
const walked = [];
for await (const page of v1.timelines.home.list({ limit: 1 })) walked.push(...page.map((one) => one.id));
if (new Set(walked).size !== walked.length || walked.length < 2) throw new Error(`a walk of ${walked}`);
await note("mastodon.v2.Search", v2.search.list({ q: "cats" }));
await note("mastodon.v1.Notification[]", v1.notifications.list());
await note("mastodon.v1.GroupedNotificationsResults", v2.notifications.list());
await note("{ count: number }", v1.notifications.unreadCount.fetch());
await note("Partial<mastodon.v1.Marker>", v1.markers.create({ home: { lastReadId: post.id } }));
await note("Partial<mastodon.v1.Marker>", v1.markers.fetch({ timeline: ["home", "notifications"] }));
await note("mastodon.v1.Preference", v1.preferences.fetch());
await note("mastodon.v1.Tag[]", v1.trends.tags.list());
await note("mastodon.v1.Tag", v1.tags.$select("cats").follow());
await note("mastodon.v1.Tag", v1.tags.$select("cats").fetch());
await note("mastodon.v1.Tag[]", v1.followedTags.list());
await note("mastodon.v1.Tag", v1.tags.$select("cats").unfollow());
await note("mastodon.v1.Status[]", v1.trends.statuses.list());
await note("mastodon.v1.Suggestion[]", v2.suggestions.list());

// Push
const keys = { p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", auth: "BTBZMqHH6r4Tts7J_aSIgg" };
const wanted = { subscription: { endpoint: "https://push.example.org/send/1", keys }, data: { alerts: { mention: true } }, policy: "followed" };
const pushed = await note("mastodon.v1.WebPushSubscription", v1.push.subscription.create(wanted));
if (!pushed.alerts.mention || pushed.policy !== "followed") throw new Error(`not as asked: ${JSON.stringify(pushed)}`);
if (pushed.serverKey !== instance.configuration.vapid.publicKey) throw new Error("another key than the instance has");
await note("mastodon.v1.WebPushSubscription", v1.push.subscription.update({ data: { alerts: { follow: true } } }));
await note("mastodon.v1.WebPushSubscription", v1.push.subscription.fetch());
await v1.push.subscription.remove();

// Order
const list = await note("mastodon.v1.List", v1.lists.create({ title: "Friends" }));
await v1.lists.$select(list.id).accounts.create({ accountIds: [bob.id] });
await note("mastodon.v1.Account[]", v1.lists.$select(list.id).accounts.list());
await note("mastodon.v1.List[]", v1.lists.list());
await note("mastodon.v1.Status[]", v1.timelines.list.$select(list.id).list());
await note(
  "mastodon.v2.Filter",
  v2.filters.create({ title: "dogs", context: ["home"], filterAction: "warn", keywordsAttributes: [{ keyword: "dogs" }] }),
);
await note("mastodon.v2.Filter[]", v2.filters.list());
await note("mastodon.v1.Filter[]", v1.filters.list());
await note("mastodon.v1.Relationship", v1.accounts.$select(bob.id).mute());
await note("mastodon.v1.Account[]", v1.mutes.list());
await note("mastodon.v1.Relationship", v1.accounts.$select(bob.id).unmute());
await note("mastodon.v1.Account[]", v1.followRequests.list());
await note("mastodon.v1.Announcement[]", v1.announcements.list());
await note("mastodon.v1.CustomEmoji[]", v1.customEmojis.list());
const told = await note("mastodon.v1.Status", v1.statuses.create({ status: "@bob, only you", visibility: "direct" }));
if (told.visibility !== "direct" || told.mentions[0].id !== bob.id) throw new Error(`no mention in ${JSON.stringify(told)}`);
const [talk] = await note("mastodon.v1.Conversation[]", v1.conversations.list());
if (talk.lastStatus.id !== told.id) throw new Error(`another conversation: ${JSON.stringify(talk)}`);
await note("mastodon.v1.Conversation", v1.conversations.$select(talk.id).read());
await v1.conversations.$select(talk.id).remove();
const [theirs] = await note("mastodon.v1.Status[]", v1.accounts.$select(bob.id).statuses.list());
await note("mastodon.v1.Report", v1.reports.create({ accountId: bob.id, statusIds: [theirs.id], comment: "a test" }));
await note("mastodon.v1.Status", v1.statuses.$select(answer.id).remove());
const refused = await v1.statuses.$select("1").fetch().catch((error) => error);
if (refused.statusCode !== 404) throw new Error(`what is not there was answered ${refused.statusCode}`);

const enough = () => ["update", "status.update", "filters_changed", "conversation"].every((name) => events.some((one) => one.event === name));
for (let round = 0; round < 300 && !enough(); round += 1) await new Promise((done) => setTimeout(done, 100));
home.unsubscribe();
tag.unsubscribe();
direct.unsubscribe();
streaming.close();
await Promise.allSettled(listening);
if (!enough()) throw new Error(`heard only ${events.map((one) => one.event)}`);
if (!events.some((one) => one.stream[0] === "hashtag")) throw new Error("nothing of the hashtag was heard");
for (const { event, payload } of events) {
  if (event === "update" || event === "status.update") answers.push({ type: "mastodon.v1.Status", value: payload });
  if (event === "conversation") answers.push({ type: "mastodon.v1.Conversation", value: payload });
  if (event === "notification") answers.push({ type: "mastodon.v1.Notification", value: payload });
}

writeFileSync(file, JSON.stringify(answers));
