from django.contrib import messages
from django.http import HttpResponse
from django.utils.translation import gettext as _

from accounts.access import member_act, member_page
from accounts.models import User
from items import polls
from items.finding import item_row
from items.hydrate import hydrate
from items.pages.cards import Cards
from items.pages.forms import ItemForm
from web.pages import INVALID, PageRequest, redirect_next, show, show_toast, wants_part


@member_act
def vote(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
    """Vote in a poll. An open page gets the poll as it is then."""
    item = item_row(item_id, reader)
    try:
        polls.vote(user=reader, item=item, choices=request.POST.getlist(f"choice-{item_id}"))
    except polls.AnswersChangedError:
        problem = _("The options have changed. Choose again.")
    except polls.ChoiceError:
        problem = _("Choose an option first.")
    except polls.OwnPollError:
        problem = _("You can't vote in your own poll.")
    except polls.VotedError:
        problem = _("You already voted in this poll.")
    except polls.PollEndedError:
        problem = _("This poll has ended.")
    else:
        problem = ""
    if not wants_part(request):
        if problem:
            messages.error(request, problem)
        return redirect_next(request, "item", item.pk)
    content = Cards(reader).content(hydrate([item.pk], reader)[0])
    response = show(request, "items/_voted.html", {"poll": content.poll}, status=INVALID if problem else 200)
    return show_toast(response, problem, is_problem=True) if problem else response


@member_page
def poll_form(request: PageRequest, reader: User) -> HttpResponse:
    """What a composer needs when a poll is begun."""
    return show(request, "items/_poll_fields.html", {"form": ItemForm.fresh()})
