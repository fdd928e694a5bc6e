"""Why the site can't use a video, in words."""

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from media.models import MediaFile, MediaState


def video_reason(code: str) -> str:
    """The sentence for a reason of media.decoder or media.processing."""
    minutes = int(settings.MEDIA_VIDEO_SECONDS // 60)
    return {
        "pictures": _("It has no picture, or its format is not H.264, HEVC, VP8, VP9 or AV1."),
        "sides": _("It's larger than 4096 by 2304 pixels."),
        "sound": _("The format of its sound is not AAC, MP3, Opus, Vorbis or PCM."),
        "minutes": ngettext("It's longer than %(count)d minute.", "It's longer than %(count)d minutes.", minutes)
        % {"count": minutes},
        "time": _("It takes too long to convert. Make it shorter, or save it as H.264 in MP4."),
        "memory": _("It takes too much memory to convert. Save it as H.264 in MP4."),
        "output": _("It becomes too large. Make it shorter."),
        "budget": _("You uploaded many videos today. Try again tomorrow."),
        "blocked": _("This site's rules don't allow this picture or video."),
        "stopped": _("Something went wrong on our side. Upload it again."),
    }.get(code, _("It's damaged or incomplete."))


def failure_of(medium: MediaFile) -> str:
    """Why a medium's conversion failed, or ""."""
    return video_reason(medium.failure) if medium.state == MediaState.FAILED else ""
