// Passkeys: asks the browser for one, or to make one, and posts what it answered in an ordinary form.
"use strict";

(() => {
  if (!window.PublicKeyCredential || !window.isSecureContext) {
    document.querySelectorAll("form[data-passkey]").forEach((form) => form.remove()); // with the place that it has (site.css)
    return;
  }

  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  const letters = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer)))
      .replace(/\+/g, "-")
      .replace(/\//g, "_")
      .replace(/=+$/, "");
  const withIds = (list) => (list || []).map((each) => ({ ...each, id: bytes(each.id) }));

  // The site's options as the browser takes them: bytes where JSON has letters.
  const wanted = (options) => {
    const key = { ...options.publicKey, challenge: bytes(options.publicKey.challenge) };
    if (key.user) key.user = { ...key.user, id: bytes(key.user.id) };
    if (key.allowCredentials) key.allowCredentials = withIds(key.allowCredentials);
    if (key.excludeCredentials) key.excludeCredentials = withIds(key.excludeCredentials);
    return { publicKey: key };
  };

  // The browser's answer as the site takes it.
  const answered = (credential) => {
    const { response } = credential;
    const said = { clientDataJSON: letters(response.clientDataJSON) };
    for (const name of ["attestationObject", "authenticatorData", "signature", "userHandle"]) {
      if (response[name]) said[name] = letters(response[name]);
    }
    if (response.getTransports) said.transports = response.getTransports();
    return {
      id: credential.id,
      rawId: letters(credential.rawId),
      type: credential.type,
      response: said,
      clientExtensionResults: credential.getClientExtensionResults(),
    };
  };

  const offer = (form, address, field, ask) => {
    form.hidden = false;
    const button = form.querySelector("button");
    let isAnswered = false;
    const failed = form.querySelector("[role=alert]");
    form.addEventListener("submit", async (event) => {
      if (isAnswered) return; // the form goes on its way
      event.preventDefault();
      failed.hidden = true;
      button.disabled = true;
      try {
        const headers = { "X-CSRFToken": form.elements.csrfmiddlewaretoken.value };
        const options = await fetch(address, { method: "POST", headers, credentials: "same-origin" });
        if (!options.ok) throw new Error(String(options.status));
        field.value = JSON.stringify(answered(await ask(wanted(await options.json()))));
        isAnswered = true;
        form.requestSubmit();
      } catch {
        failed.hidden = false; // cancelled, timed out, or no passkey for this site
        failed.scrollIntoView({ block: "nearest" });
      } finally {
        button.disabled = false;
      }
    });
  };

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    offer(form, form.dataset.passkey, form.elements.answer, (options) => navigator.credentials.get(options));
  }
  for (const form of document.querySelectorAll("form[data-new-passkey]")) {
    for (const each of document.querySelectorAll("[data-without-passkeys]")) each.hidden = true;
    offer(form, form.dataset.newPasskey, form.elements.credential, (options) => navigator.credentials.create(options));
  }
})();
