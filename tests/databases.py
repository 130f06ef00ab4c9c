"""A PostgreSQL server of the tests' own, and the stores that tests run against."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from trace_servers import free_port


def postgres_programs():
    """Folder of initdb and postgres; None where there is none."""
    found = shutil.which("initdb")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    folders += [Path(found).resolve().parent] if found else []
    needed = ("initdb", "pg_ctl", "createdb", "postgres")
    return next((each for each in folders if all((each / name).exists() for name in needed)), None)


class PostgreSQL:
    """A cluster in a temporary folder, on a free port; databases are made by name."""

    def __init__(self, programs):
        self._folder = Path(tempfile.mkdtemp(prefix="btdagg-pg-"))
        # PostgreSQL refuses to run as root.
        self._as = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        if os.geteuid():
            self._as = []
        else:
            shutil.chown(self._folder, "postgres", "postgres")
        self._programs = programs
        data = self._folder / "data"
        try:
            self._run("initdb", "-D", data, "-U", "btdagg", "--auth=trust", "--no-sync")
            self.port = free_port()
            options = f"-c listen_addresses=127.0.0.1 -c port={self.port} -c fsync=off"
            options += f" -c unix_socket_directories={self._folder}"
            log = self._folder / "log"
            self._run("pg_ctl", "-D", data, "-w", "-l", log, "-o", options, "start")
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def database(self, name):
        """Make a database and return its URL."""
        self._run("createdb", "-h", "127.0.0.1", "-p", self.port, "-U", "btdagg", name)
        return f"postgresql://btdagg@127.0.0.1:{self.port}/{name}"

    def stop(self):
        data = self._folder / "data"
        self._run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(self._folder)

    def _run(self, program, *arguments):
        command = [*self._as, str(self._programs / program), *map(str, arguments)]
        done = subprocess.run(
            command,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # a pipe would be kept open by the server
            stderr=subprocess.PIPE if program != "pg_ctl" else subprocess.DEVNULL,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {(done.stderr or b'').decode()}")
