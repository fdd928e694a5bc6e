from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

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

class RecordBatchRequest(_message.Message):
    __slots__ = ("plays",)
    PLAYS_FIELD_NUMBER: _ClassVar[int]
    plays: _containers.RepeatedCompositeFieldContainer[RecordPlaysRequest]
    def __init__(self, plays: _Optional[_Iterable[_Union[RecordPlaysRequest, _Mapping]]] = ...) -> None: ...

class RecordBatchResponse(_message.Message):
    __slots__ = ("refused", "unknown")
    class Wait(_message.Message):
        __slots__ = ("user_id", "retry_after")
        USER_ID_FIELD_NUMBER: _ClassVar[int]
        RETRY_AFTER_FIELD_NUMBER: _ClassVar[int]
        user_id: int
        retry_after: int
        def __init__(self, user_id: _Optional[int] = ..., retry_after: _Optional[int] = ...) -> None: ...
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    refused: _containers.RepeatedCompositeFieldContainer[RecordBatchResponse.Wait]
    unknown: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, refused: _Optional[_Iterable[_Union[RecordBatchResponse.Wait, _Mapping]]] = ..., unknown: _Optional[_Iterable[int]] = ...) -> None: ...

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
