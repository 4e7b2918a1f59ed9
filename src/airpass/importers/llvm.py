"""Which LLVM library Sionna RT finds, for messages that say what to install."""

import ctypes.util
import os
from pathlib import Path

# Dr.Jit 1.5 refuses LLVM 14, aborts with 15 and 16 when paths are computed, and runs with 19.
ADVICE = (
    "install LLVM 19 or newer (Debian, Ubuntu: apt-get install libllvm19; macOS: brew install llvm) and set "
    "DRJIT_LIBLLVM_PATH to its libLLVM if an older one is found first"
)
_FOLDERS = (
    "/usr/lib",
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/local/lib",
)


def llvm_libraries() -> list[str]:
    """LLVM libraries that can be found: the one that DRJIT_LIBLLVM_PATH names, or else installed ones."""
    named = os.environ.get("DRJIT_LIBLLVM_PATH")
    if named:
        return [named] if Path(named).is_file() else []
    found = {str(path.resolve()) for folder in _FOLDERS for path in Path(folder).glob("libLLVM*.so*")}
    listed = ctypes.util.find_library("LLVM")
    return sorted(found) or ([listed] if listed else [])


def llvm_hint(code: int, errors: str) -> str:
    """What to do after a trial run of Sionna RT has failed.

    Parameters
    ----------
    code
        Exit code of the trial run; negative if a signal ended it.
    errors
        What it wrote to standard error.

    Returns
    -------
    str
        One line.
    """
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    if code > 0 and "llvm" not in errors.lower():
        return lines[-1] if lines else f"its trial run ended with code {code}"
    libraries = llvm_libraries()
    named = os.environ.get("DRJIT_LIBLLVM_PATH")
    if not libraries:
        found = f"DRJIT_LIBLLVM_PATH = {named} is not a file" if named else "no LLVM library was found"
    else:
        ended = "aborts" if code < 0 else "fails"
        found = f"it {ended} with the LLVM library that it found ({', '.join(libraries)})"
    return f"{found}; {ADVICE}"
