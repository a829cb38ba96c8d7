"""How Spark writes its own log of a job to a local folder: without starting a process for each file.

Every batch writes a file for each source that keeps a log, and two more. Hadoop sets the rights of a new file by a
process, unless it finds its native library, which PySpark does not bring.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

HADOOPS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""Starts far fewer processes than Spark's default, which has fifty for the logs of one batch of three local streams."""

OURS = "midstream.LocalLogFiles"

_SOURCE = f"""
package midstream;
import java.io.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.*;

public class LocalLogFiles extends {HADOOPS} {{
    public LocalLogFiles(Path path, Configuration conf) throws IOException {{
        super(path, conf);
    }}

    public FSDataOutputStream createTempFile(Path path) {{
        try {{
            if (fs() instanceof RawLocalFileSystem) {{
                OutputStream file = new FileOutputStream(path.toUri().getPath());
                return new FSDataOutputStream(new BufferedOutputStream(file), null);
            }}
        }} catch (IOException e) {{
            // Hadoop says why, or makes the folder first.
        }}
        return super.createTempFile(path);
    }}
}}
"""


def log_file_manager(session: SparkSession) -> str:
    """Name the class by which queries write Spark's log; on first use Spark's own compiler compiles it."""
    jvm: Any = session._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    with suppress(Py4JError):
        loader.loadClass(OURS)
        return OURS
    with suppress(Py4JError, OSError), tempfile.TemporaryDirectory(prefix="midstream-") as folder:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(loader)
        compiler.cook(_SOURCE)
        target = Path(folder, *OURS.split(".")).with_suffix(".class")
        target.parent.mkdir()
        target.write_bytes(compiler.getBytecodes()[OURS])
        loader.addURL(jvm.java.io.File(folder).toURI().toURL())
        loader.loadClass(OURS)  # From now on nobody reads the file.
        return OURS
    return HADOOPS
