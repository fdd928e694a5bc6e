"""The encoding of a page, as browsers find it.

By the Encoding Standard, the HTML standard's prescan, and a guess where nothing names it.
"""

import codecs
import re

import webencodings

from items.link_cards.heads import MARKUP, attributes_of, comment_end, label_of

PRESCANNED = 1_024
"""Bytes at the beginning of a page in which browsers look for the name of its encoding."""
XML = "application/xhtml+xml"
UTF8 = codecs.lookup("utf-8")
UNREADABLE = "\ufffd"
"""The character that stands for bytes outside an encoding."""
_WINDOWS_1252 = codecs.lookup("cp1252")
_BEGINNINGS = {
    codecs.BOM_UTF8: UTF8,
    codecs.BOM_UTF16_LE: codecs.lookup("utf-16-le"),
    codecs.BOM_UTF16_BE: codecs.lookup("utf-16-be"),
}
_DECLARATIONS = {b"<\0?\0x\0": codecs.lookup("utf-16-le"), b"\0<\0?\0x": codecs.lookup("utf-16-be")}
# Python's decoders of these names lack characters that browsers know.
_WIDER = {"gbk": codecs.lookup("gb18030"), "euc-jp": codecs.lookup("euc_jis_2004")}
# A name that was read byte by byte is not in these.
_IN_PAGE = _WIDER | {"utf-16le": UTF8, "utf-16be": UTF8, "x-user-defined": _WINDOWS_1252}
_XML_ENCODING = re.compile(r"<\?xml[^>]*?encoding[\0-\x20]*+=[\0-\x20]*+([\"'])([^\"'\0-\x20>]++)\1[^>]*+>")
_BETWEEN_WORDS = re.compile(rb"[<>\"\0-\x1f]++")
# Nobody writes so: the guess is wrong.
_MIXED = re.compile("[a-z][\u0370-\u06ff]|[\u0370-\u06ff][a-z]", re.IGNORECASE)


def declared_encoding(body: bytes, content_type: str) -> codecs.CodecInfo | None:
    """The encoding that the first bytes of a page, its server or its beginning name."""
    for mark, codec in _BEGINNINGS.items():
        if body.startswith(mark):
            return codec
    kind, *parameters = content_type.split(";")
    for parameter in parameters:
        name, _, label = parameter.partition("=")
        if name.strip().lower() == "charset" and (found := webencodings.lookup(label.strip(" \t\"'"))):
            return _WIDER.get(found.name, found.codec_info)
    for mark, codec in _DECLARATIONS.items():
        if body.startswith(mark):
            return codec
    text = body[:PRESCANNED].decode("latin-1")
    if kind.strip().lower() == XML:
        return _xml_encoding(text) or _meta_encoding(text)
    return _meta_encoding(text) or _xml_encoding(text)


def encoding_of_label(label: str) -> codecs.CodecInfo | None:
    """The encoding with a label that stands in the page itself."""
    found = webencodings.lookup(label)
    return _IN_PAGE.get(found.name, found.codec_info) if found else None


def guess_encoding(body: bytes) -> codecs.CodecInfo:
    """The encoding that the words of a page look like."""
    if body.isascii():
        return codecs.lookup("iso2022_jp") if b"\x1b" in body else UTF8
    text = decoded(body, UTF8)
    unreadable = text.count(UNREADABLE)
    if 2 * unreadable < len(text) - len(text.encode("ascii", "ignore")) - unreadable:
        return UTF8  # with a mistake
    from chardet import EncodingEra, detect  # its tables take 28 MB, and few pages need them

    words = b"\n".join(part for part in _BETWEEN_WORDS.split(body) if not part.isascii())
    found = detect(words, encoding_era=EncodingEra.MODERN_WEB, prefer_superset=True, compat_names=False)["encoding"]
    codec = codecs.lookup(found) if found else _WINDOWS_1252
    return _WINDOWS_1252 if _MIXED.search(decoded(words, codec)) else codec


def decoded(body: bytes, codec: codecs.CodecInfo) -> str:
    """The text of a page, with `UNREADABLE` for what can't be decoded."""
    return codec.decode(body, "replace")[0]


def _meta_encoding(text: str) -> codecs.CodecInfo | None:
    at = 0
    while mark := MARKUP.search(text, at):
        if mark[2] is None:
            at = comment_end(text, mark)
            continue
        read = attributes_of(text, mark.end())
        if read is None:
            return None
        attributes, _is_closed, at = read
        if mark[0].lower() == "<meta" and (codec := encoding_of_label(label_of(attributes))):
            return codec
    return None


def _xml_encoding(text: str) -> codecs.CodecInfo | None:
    found = _XML_ENCODING.match(text)
    return encoding_of_label(found[2]) if found else None
