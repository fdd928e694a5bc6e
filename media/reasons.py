"""Why the site can't use a video, in words."""

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from media.models import MediaFile, MediaState

UNPLAYED = {"mulaw": "µ-law", "alaw": "A-law", "mpeg2": "MPEG-2", "vorbis": "Vorbis in MP4"}


def video_reason(code: str) -> str:
    """The sentence for a reason of media.decoder or media.processing."""
    if code in UNPLAYED:
        return _("%(name)s is not taken: browsers can't play it.") % {"name": UNPLAYED[code]}
    if code == "minutes":
        most = settings.MEDIA_VIDEO_SECONDS // 60
        return ngettext(
            "Videos can be up to %(count)d minute long.", "Videos can be up to %(count)d minutes long.", most
        ) % {"count": most}
    return {
        "mkv": _("MKV is not taken: use MP4, MOV or WebM."),
        "kind": _("Use MP4, MOV or WebM."),
        "pictures": _("It has no picture, or one that browsers can't play."),
        "sides": _("It's wider or taller than 8192 pixels."),
        "sound": _("Browsers can't play its sound."),
        "parts": _("It has too many parts."),
        "memory": _("It has too many parts."),
        "time": _("Converting it takes too long. Make it shorter or smaller."),
        "budget": _("You uploaded many videos today. Try again tomorrow."),
        "stopped": _("Something went wrong on our side. Upload it again."),
    }.get(code, _("It's damaged or incomplete."))


def failure_of(medium: MediaFile) -> str:
    """Why a medium's conversion failed, or ""."""
    return video_reason(medium.failure) if medium.state == MediaState.FAILED else ""
