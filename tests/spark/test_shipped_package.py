"""The package as Python workers get it: compiled, with its sources."""

import inspect
import subprocess
import sys
import zipfile

from midstream.spark import session
from midstream.spark.task import StepTask

PROGRAM = """
import inspect, sys
sys.path.insert(0, sys.argv[1])
from midstream.spark import task
print(task.__file__)
print(inspect.getsource(task.StepTask))
"""


def test_workers_need_not_compile_it() -> None:
    archive = session._archive()
    names = zipfile.ZipFile(archive).namelist()
    sources = {name for name in names if name.endswith(".py")}
    assert sources
    assert {f"{name}c" for name in sources} == {name for name in names if name.endswith(".pyc")}
    told = subprocess.run([sys.executable, "-c", PROGRAM, archive], capture_output=True, text=True, check=True).stdout
    place, source = told.split("\n", 1)
    assert place == f"{archive}/midstream/spark/task.pyc"
    assert source.strip() == inspect.getsource(StepTask).strip(), "a traceback shows the lines that failed"
