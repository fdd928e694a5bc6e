from typing import Any

from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest

from accounts import faces, purge
from accounts.about.logo import rename_logo
from accounts.models import User
from accounts.signals import account_deleted
from accounts.signing_in import places, step_up
from media.models import MediaFile
from media.signals import owner_hidden, sizes_made


@receiver(user_logged_in)
def record_proof(sender: Any, request: HttpRequest, **kwargs: Any) -> None:
    """Record a sign-in or sign-up as proof of identity and as a place."""
    step_up.record_proof(request)
    places.record_visit(request)


@receiver(account_deleted)
def begin_purge(sender: type[User], user_id: int, **kwargs: Any) -> None:
    """Have a worker remove what a deleted account leaves behind."""
    purge.purge.delay(user_id)


@receiver(owner_hidden)
def rename_faces(sender: type[MediaFile], media: list[MediaFile], **kwargs: Any) -> None:
    """Give avatar and banner of a hidden account new addresses."""
    faces.rename_faces(media)


@receiver(sizes_made)
def show_sizes_of_faces(sender: type[MediaFile], media: list[MediaFile], **kwargs: Any) -> None:
    """Give avatars and banners names that tell of their sizes, and the logo too."""
    for row in media:
        faces.rename_faces([row])
        rename_logo(row)
