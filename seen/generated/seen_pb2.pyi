from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class FilterRequest(_message.Message):
    __slots__ = ("user_id", "ids")
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    user_id: int
    ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, user_id: _Optional[int] = ..., ids: _Optional[_Iterable[int]] = ...) -> None: ...

class FilterResponse(_message.Message):
    __slots__ = ("unseen",)
    UNSEEN_FIELD_NUMBER: _ClassVar[int]
    unseen: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, unseen: _Optional[_Iterable[int]] = ...) -> None: ...

class RecordPlaysRequest(_message.Message):
    __slots__ = ("user_id", "ids")
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    user_id: int
    ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, user_id: _Optional[int] = ..., ids: _Optional[_Iterable[int]] = ...) -> None: ...

class RecordPlaysResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RecordIssuedRequest(_message.Message):
    __slots__ = ("user_id", "ids")
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    user_id: int
    ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, user_id: _Optional[int] = ..., ids: _Optional[_Iterable[int]] = ...) -> None: ...

class RecordIssuedResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
