# SPDX-License-Identifier: Apache-2.0
"""Names a package that is missing when something that needs it is called, so that importing dptrack needs none."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def reason(what: str, package: str, error: BaseException | None) -> str:
    """One line: what needs which package, and how to install it."""
    if error is None or getattr(error, 'name', None) == package:
        return '%s requires the package %s: pip install %s' % (what, package, package)
    return '%s requires the package %s, which cannot be imported: %s' % (what, package, str(error).split('\n')[0])


def need(what: str, package: str, error: BaseException | None) -> None:
    """Raises dptrack.Error if the import of the package has failed.

    Args:
        what: Name of what was called, for the message.
        package: The package to install.
        error: What its import raised; None if it was imported.

    Raises:
        Error: error is not None.
    """
    if error is not None:
        from dptrack._run import Error
        raise Error(reason(what, package, error)) from None


def same(method: Any) -> Any:
    """A decorator in place of one that is missing: returns the method."""
    return method


def base(package: str, error: BaseException) -> Any:
    """A base class in place of one that is missing.

    Args:
        package: The package to install.
        error: What its import raised.

    Returns:
        A class whose subclasses raise dptrack.Error when they are called.
    """
    class Missing:
        def __new__(cls, *_: object, **__: object) -> Missing:
            need('%s.%s' % (cls.__module__, cls.__name__), package, error)
            return object.__new__(cls)

    return Missing
