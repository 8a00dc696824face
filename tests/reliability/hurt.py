"""What several tests of this folder do: read the one line of an error, and make a file of the future."""

import re


def error_of(outcome):
    """The last line of a command that failed by the user's doing."""
    code, out, err = outcome
    assert code == 2, err
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("error: ")
    assert "internal error" not in err
    return last


def newer(path, target):
    """The same file, said to be of a version that nobody has written yet."""
    content = path.read_bytes()
    changed = re.sub(rb'("?format_version"?: ?[\'"])[1-8]([\'"])', rb"\g<1>9\g<2>", content)
    assert changed != content
    target.write_bytes(changed)
    return target
