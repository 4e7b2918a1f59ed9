"""Methods as frozen dataclasses: their fields are the options, and they are found by name.

A method is given as a registered name, as an object, as a class, as a function, or as `file.py:Name`
or `package.module:Name`. Built-in methods are the classes in a package's modules that set `name`;
other distributions add theirs through an entry-point group with the package's name.
"""

import importlib
import inspect
import pkgutil
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, make_dataclass, replace
from functools import cache, partial
from importlib.metadata import entry_points
from typing import Any, ClassVar, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.references import is_reference, load_reference
from airpass.core.text import shown

Report = Callable[[str], None]  # callback for progress messages

_THREADS = "threads"  # metadata key of fields that set a number of threads
_LONGEST_NAME = 100  # names become parts of file names


@dataclass(frozen=True)
class Method:
    """Base class of all methods. Subclasses are frozen dataclasses whose fields are the options."""

    name: ClassVar[str]  # name on the command line; classes without one are not registered
    summary: ClassVar[str] = ""  # one line; the first line of the class's docstring

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        name = vars(cls).get("name")
        if isinstance(name, str):
            _check_name(name)
        first, *_ = (cls.__doc__ or "").strip().splitlines() or [""]
        cls.summary = first.rstrip(".")


def _check_name(name: str) -> None:
    """Refuse names that cannot be part of a file name or a label."""
    plain = all(c.isalnum() or c in "._+-" for c in name) and name[:1].isalnum() | name.startswith("_")
    if not plain or len(name) > _LONGEST_NAME:
        raise InvalidInput(
            f"name = {name[:_LONGEST_NAME]!r}: a method's name must be letters, digits and . _ + -, "
            f"at most {_LONGEST_NAME}, and begin with a letter, a digit or _"
        )


class FunctionMethod(Method):
    """Base class of functions as methods. The function's parameters with defaults are the options."""

    arguments: ClassVar[tuple[str, ...]]  # what the function is called with
    special: ClassVar[tuple[str, ...]] = ()  # optional parameters that are not options
    function: ClassVar[Callable[..., Any]]

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of the function."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FunctionMethod):
            return NotImplemented
        return type(self).function is type(other).function and self.options == other.options

    def __hash__(self) -> int:
        return hash((id(type(self).function), *self.options.items()))

    def __reduce__(self) -> Any:
        return _rebuilt, (type(self).__base__, type(self).function, self.options)


def _rebuilt(base: type[FunctionMethod], function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    return replace(from_function(base, function), **options)


def from_function(base: type[FunctionMethod], function: Callable[..., Any], label: str = "method") -> Any:
    """A method object that calls a function.

    Parameters
    ----------
    base
        Class that calls the function, derived from `FunctionMethod`.
    function
        Takes `base.arguments`; its other parameters are options and need defaults.
    label
        Name of the argument, for error messages.

    Returns
    -------
    Any
        A frozen dataclass derived from `base`, with the function's name and options.
    """
    inner = function.func if isinstance(function, partial) else function
    name = getattr(inner, "__name__", type(inner).__name__)
    wanted = f"{name}({', '.join(base.arguments)})"
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise InvalidInput(f"{label} = {name}: must be a Python function {wanted}") from None
    positional = [
        item for item in parameters if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)
    ]
    rest = positional[len(base.arguments) :]
    rest += [item for item in parameters if item.kind is item.KEYWORD_ONLY]
    starred = any(item.kind is item.VAR_POSITIONAL for item in parameters)
    if len(positional) < len(base.arguments) and not starred:
        raise InvalidInput(f"{label} = {name}: takes {len(positional)} arguments; must be {wanted}")
    members = []
    for item in rest:
        if item.name in base.special:
            continue
        if not isinstance(item.default, bool | int | float | str | None):
            raise InvalidInput(
                f"{label} = {name}: parameter {item.name} needs a number, a text, True, False or None as "
                f"default; it is called as {wanted}"
            )
        if item.name in ("name", "function") or hasattr(base, item.name):
            raise InvalidInput(f"{label} = {name}: an option cannot be called {item.name}")
        kind = str | None if item.default is None else type(item.default)
        given = kind if item.annotation is item.empty else item.annotation
        members.append((item.name, given, field(default=item.default)))
    try:
        made = make_dataclass(
            name,
            members,
            bases=(base,),
            namespace={
                "name": name,
                "function": staticmethod(function),
                "__doc__": inspect.getdoc(inner) or f"The function {name}.",
                "__module__": getattr(inner, "__module__", None) or __name__,  # where annotations are read
            },
            frozen=True,
            eq=False,
        )
    except InvalidInput as error:
        raise InvalidInput(f"{label}: {error}; define the function with def") from None
    return made()


M = TypeVar("M", bound=Method)


def threads_field(default: int | None) -> Any:
    """An option that sets a number of threads. Results do not depend on it."""
    return field(default=default, metadata={_THREADS: True})


def discard(message: str) -> None:
    """Discard a progress message."""


@dataclass(frozen=True)
class Registry(Generic[M]):
    """The methods of one kind.

    Parameters
    ----------
    base
        Class that the methods derive from.
    package
        Package whose modules hold the built-in methods, and entry-point group of the others.
    wrapper
        Class that turns functions into methods, derived from `base` and `FunctionMethod`; None if functions
        are not accepted.
    """

    base: type[M]
    package: str
    wrapper: type[FunctionMethod] | None = None

    def methods(self) -> dict[str, M]:
        """Every registered method with its default options, sorted by name."""
        found: dict[str, M] = {}
        for kind in (*self._built_in(), *self._installed()):
            if kind.name in found:
                raise RuntimeError(f"two methods are called {kind.name!r}")
            found[kind.name] = kind()
        return dict(sorted(found.items()))

    def resolve(
        self,
        method: "str | M | type[M] | Callable[..., Any]",
        options: Mapping[str, Any] | None = None,
        label: str = "method",
    ) -> M:
        """Resolve a user's argument to a method object, with changed options.

        Parameters
        ----------
        method
            Registered name, object, class, function, `file.py:Name` or `package.module:Name`.
        options
            Changes of the method's fields; nested methods take nested mappings.
        label
            Name of the argument, for error messages.

        Returns
        -------
        M
            A method object.
        """
        found: Any = method
        if isinstance(method, str):
            known = _registered(self)
            if is_reference(method):
                found = load_reference(label, method)
            elif method in known:
                found = known[method]
            else:
                checks.one_of(label, method, [*known, "file.py:Name"])
        if isinstance(found, type) and issubclass(found, self.base):
            found = found()
        if self.wrapper is not None and _is_function(found):
            found = from_function(self.wrapper, found, label)
        named = isinstance(getattr(found, "name", None), str)
        if not (named and isinstance(found, self.base) and hasattr(found, "__dataclass_fields__")):
            function = (
                "" if self.wrapper is None else f", or a function ({', '.join(self.wrapper.arguments)})"
            )
            raise InvalidInput(
                f"{label} = {shown(method)}: must be a dataclass derived from {self.base.__name__} "
                f"with a class attribute name{function}"
            )
        changed: M = with_options(found, {} if options is None else options)
        if not isinstance(getattr(type(changed), "name", None), property):
            _check_name(changed.name)
        return changed

    def _built_in(self) -> Iterator[type[M]]:
        package = importlib.import_module(self.package)
        for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda item: item.name):
            module = importlib.import_module(f"{self.package}.{info.name}")
            for value in vars(module).values():
                own = isinstance(value, type) and value.__module__ == module.__name__
                if own and issubclass(value, self.base) and isinstance(vars(value).get("name"), str):
                    yield value

    def _installed(self) -> Iterator[type[M]]:
        for entry in entry_points(group=self.package):
            try:
                yield type(self.resolve(entry.load(), label=f"entry point {entry.name}"))
            except Exception as error:  # a broken plug-in must not stop the others
                warnings.warn(f"entry point {entry.value} is ignored: {error}", stacklevel=2)


def _is_function(found: Any) -> bool:
    """Whether `found` is a function or another object that can be called, and not a method or a class."""
    return callable(found) and not isinstance(found, type | Method) and not inspect.isbuiltin(found)


@cache
def _registered(registry: Registry[M]) -> dict[str, M]:
    return registry.methods()


@dataclass(frozen=True)
class RecordedMethod(Method):
    """Name and options of a method, read from a stored result.

    It stands for a method that is not registered, such as a class of the user's, or one whose options have
    changed since. It cannot run: files hold no code.
    """

    recorded_name: str
    nested: Mapping[str, str]  # names of the nested methods, by field
    options: Mapping[str, Any]

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the method."""
        return self.recorded_name

    def refuse(self) -> InvalidInput:
        """The error of running it."""
        return InvalidInput(
            f"method {self.name}: only its name and options are stored in the file; give the method itself"
        )


def options_dict(options: Any) -> dict[str, Any]:
    """Every option with its value; nested options as nested tables."""
    if isinstance(options, RecordedMethod):
        return dict(options.options)
    return asdict(options)


def parts(method: Method) -> dict[str, str]:
    """Names of the nested methods, by field."""
    if isinstance(method, RecordedMethod):
        return dict(method.nested)
    values = {item.name: getattr(method, item.name) for item in fields(method)}
    return {name: value.name for name, value in values.items() if isinstance(value, Method)}


def result_options(method: Any) -> dict[str, Any]:
    """The options that a result depends on: all except numbers of threads."""
    if isinstance(method, RecordedMethod):
        return dict(method.options)
    return {
        item.name: result_options(value) if is_dataclass(value) else value
        for item in fields(method)
        for value in (getattr(method, item.name),)
        if _THREADS not in item.metadata
    }


def with_threads(method: M, count: int) -> M:
    """The same method, limited to `count` threads wherever it uses threads."""
    changes: dict[str, Any] = {}
    for item in fields(method):
        value = getattr(method, item.name)
        if _THREADS in item.metadata:
            changes[item.name] = count
        elif isinstance(value, Method):
            changes[item.name] = with_threads(value, count)
    return replace(method, **changes)


def with_options(method: Any, changes: Mapping[str, Any], prefix: str = "") -> Any:
    """A copy of `method`, or of any options dataclass, with some fields changed.

    Parameters
    ----------
    method
        Frozen dataclass with the current values.
    changes
        New values by field; nested dataclasses take nested mappings. Numbers may be given as text, as on
        a command line.
    prefix
        Where the fields are nested, for error messages.

    Returns
    -------
    Any
        A new object, or `method` itself if `changes` is empty.
    """
    if not isinstance(changes, Mapping):
        raise InvalidInput(f"options = {shown(changes)}: must be a table of options")
    if not changes:
        return method
    names = [item.name for item in fields(method)]
    if not names:
        raise InvalidInput(f"option {prefix}{next(iter(changes))}: this method has no options")
    checks.known_keys("option " + prefix.rstrip(".") if prefix else "option", changes, names)
    hints = _hints(method.__class__)
    values: dict[str, Any] = {}
    for name, value in changes.items():
        current = getattr(method, name)
        if is_dataclass(current) and isinstance(value, Mapping):
            values[name] = with_options(current, value, f"{prefix}{name}.")
        elif is_dataclass(current) and not isinstance(value, type(current)):
            kind = "a nested method" if isinstance(current, Method) else "a table of options"
            raise InvalidInput(f"option {prefix}{name}: is {kind}; set {name}.<option>")
        else:
            values[name] = _converted(f"option {prefix}{name}", value, hints[name])
    return replace(method, **values)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _converted(label: str, value: Any, hint: Any) -> Any:
    """`value` converted from text to the option's type, if it is text."""
    if get_origin(hint) in (Union, types.UnionType):
        if value is None or value == "none":
            return None
        hint = next(kind for kind in get_args(hint) if kind is not type(None))
    if not isinstance(value, str) or hint is str:
        return value
    words = {bool: "true or false", int: "a whole number", float: "a number"}
    try:
        if hint is bool:
            return {"true": True, "false": False}[value.lower()]
        return hint(value)
    except (KeyError, ValueError):
        raise InvalidInput(f"{label} = {shown(value)}: must be {words.get(hint, hint)}") from None
