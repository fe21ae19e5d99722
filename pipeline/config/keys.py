"""The keys that may be written, read off the settings classes: what errors, the documentation and its test go by."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from pipeline.config.mistake import Location
from pipeline.model.settings import duration


class Key(msgspec.Struct, frozen=True):
    """A key and the field behind it. In ``location``, ``<name>`` stands for any name and ``[]`` for any place in a list."""

    location: Location
    field: FieldInfo
    owner: type[BaseModel]


class Place(msgspec.Struct, frozen=True):
    """Where an error of pydantic's points: a location in the file, the settings class around it, the field, what it may hold."""

    location: Location
    owner: type[BaseModel] | None
    field: FieldInfo | None
    annotation: Any


def keys(model: type[BaseModel], at: Location = ()) -> Iterator[Key]:
    """Yield every key of a settings class and of all below it."""
    for name, field in fields(model).items():
        yield Key((*at, name), field, model)
        yield from _below(field.annotation, (*at, name))


def _below(annotation: Any, at: Location) -> Iterator[Key]:
    for member in members(annotation):
        if _is_settings(member):
            yield from keys(member, at)
        elif (item := _item(member)) is not None:
            yield from _below(item, (*at, "<name>" if _is_mapping(member) else "[]"))


def fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return a settings class's fields by the key that is written for each."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def members(annotation: Any) -> tuple[Any, ...]:
    """Return what an annotation allows besides nothing: the members of a union, else itself."""
    if get_origin(annotation) is Annotated:
        return members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return tuple(member for part in get_args(annotation) for member in members(part))
    return () if annotation is NoneType else (annotation,)


def metadata(field: FieldInfo) -> tuple[Any, ...]:
    """Return the constraints and validators of a field, those inside ``… | None`` too."""
    return (*field.metadata, *_metadata(field.annotation))


def _metadata(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Annotated:
        first, *rest = get_args(annotation)
        found = [part for one in rest for part in (one.metadata if isinstance(one, FieldInfo) else [one])]
        return (*found, *_metadata(first))
    if get_origin(annotation) in (Union, UnionType):
        return tuple(part for one in get_args(annotation) for part in _metadata(one))
    return ()


def is_duration(field: FieldInfo) -> bool:
    """Whether a field is written with a unit of time."""
    return any(isinstance(one, BeforeValidator) and one.func is duration for one in metadata(field))


def is_nullable(field: FieldInfo) -> bool:
    """Whether ``null`` is a value of the field."""
    return get_origin(field.annotation) in (Union, UnionType) and NoneType in get_args(field.annotation)


def tags(model: Any) -> dict[str, str]:
    """Return the fields of a settings class that hold one word and no other: what tells the members of a union apart."""
    if not _is_settings(model):
        return {}
    literals = {
        name: get_args(field.annotation) for name, field in fields(model).items() if get_origin(field.annotation) is Literal
    }
    return {name: words[0] for name, words in literals.items() if len(words) == 1}


def written(annotation: Any, data: Any, at: Location = ()) -> Iterator[tuple[Location, FieldInfo, Any]]:
    """Yield (location, field, value) of each known key that ``data`` has, whether its value is right or not."""
    for member in members(annotation):
        if _is_settings(member) and isinstance(data, Mapping):
            if not _tagged(member, data):
                continue
            for name, field in fields(member).items():
                if name in data:
                    yield (*at, name), field, data[name]
                    yield from written(field.annotation, data[name], (*at, name))
        elif (item := _item(member)) is not None:
            for key, value in _items(member, data):
                yield from written(item, value, (*at, key))


def place(model: type[BaseModel], location: Sequence[int | str]) -> Place:
    """Return where an error points; pydantic's labels of the members of a union, which no file has, are left out."""
    found = Place((), None, None, model)
    for part in location:
        found = _descend(found, part)
    return found


def _descend(at: Place, part: int | str) -> Place:
    options = members(at.annotation)
    if len(options) > 1:
        chosen = next((one for one in options if _is_called(one, part)), None)
        if chosen is not None or not any(_is_settings(one) or _item(one) is not None for one in options):
            return Place(at.location, at.owner, at.field, chosen)
    here, option = (*at.location, part), options[0] if options else None
    if option is not None and _is_settings(option):
        field = fields(option).get(str(part))
        return Place(here, option, field, field.annotation if field is not None else None)
    return Place(here, at.owner, at.field, _item(option))


def _is_called(option: Any, part: int | str) -> bool:
    return part == getattr(option, "__name__", None) or part in tags(option).values()


def _tagged(model: type[BaseModel], data: Mapping[Any, Any]) -> bool:
    return all(data[name] == word for name, word in tags(model).items() if name in data)


def _is_settings(annotation: Any) -> bool:
    return inspect.isclass(annotation) and issubclass(annotation, BaseModel)


def _is_mapping(annotation: Any) -> bool:
    origin = get_origin(annotation)
    return inspect.isclass(origin) and issubclass(origin, Mapping)


def _item(annotation: Any) -> Any:
    """Return what a list or a mapping holds; None for anything else."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if not inspect.isclass(origin) or not arguments:
        return None
    if issubclass(origin, Mapping):
        return arguments[1]
    return arguments[0] if issubclass(origin, Sequence | set | frozenset) else None


def _items(annotation: Any, data: Any) -> list[tuple[Any, Any]]:
    if _is_mapping(annotation):
        return list(data.items()) if isinstance(data, Mapping) else []
    return list(enumerate(data)) if isinstance(data, list) else []
