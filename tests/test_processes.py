"""Worker processes end with the one that started them."""

import subprocess
import sys

FOLLOWER = """
import time
from airpass.processes import follow_parent
follow_parent({parent})
time.sleep(60.0)
"""


def test_a_process_whose_parent_is_gone_already_ends() -> None:
    ended = subprocess.Popen([sys.executable, "-c", "pass"])
    ended.wait()
    program = FOLLOWER.format(parent=ended.pid)
    assert subprocess.run([sys.executable, "-c", program], timeout=30, check=False).returncode == 1
