"""What the package does to the process: imports, memory, threads, forks, Ctrl-C."""

import multiprocessing
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from btdagg import DavidsonModel

MODEL = DavidsonModel(beta=1.2, eta0=2.0, gamma=0.8)


def run(code):
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_importing_loads_numpy_alone():
    loaded = run(
        """
        import sys
        import numpy
        before = {name.partition('.')[0] for name in sys.modules}
        import btdagg
        after = {name.partition('.')[0] for name in sys.modules}
        print(' '.join(sorted(after - before - set(sys.stdlib_module_names))))
        """
    )
    assert loaded.split() == ["btdagg", "lazy_loader"]


def test_deciding_by_a_model_loads_no_scipy(tmp_path):
    MODEL.save(tmp_path / "model.json")
    (tmp_path / "votes.csv").write_text("item,vote\na,1\na,0\nb,-1\n")
    loaded = run(
        f"""
        import sys
        from btdagg.cli import run
        status = run(['decide', '{tmp_path}/model.json', '{tmp_path}/votes.csv'])
        print(status, [name for name in sys.modules if name in ('scipy.stats', 'scipy.optimize')])
        """
    )
    assert loaded.splitlines()[-1] == "0 []"


@pytest.mark.parametrize(("dtype", "order"), [("uint8", "C"), ("int64", "F")])
def test_deciding_needs_little_memory_beyond_its_output(dtype, order):
    used = run(
        f"""
        import numpy as np
        from btdagg import DavidsonModel

        def field(name):
            with open('/proc/self/status') as status:
                return next(int(line.split()[1]) for line in status if line.startswith(name))

        counts = np.ones((2_000_000, 3), dtype='{dtype}', order='{order}')
        counts[7] = [100, 3, 60]
        model = DavidsonModel(1.2, 2.0, 0.8)
        model.decide(counts[:10])
        with open('/proc/self/clear_refs', 'w') as peak:
            peak.write('5')  # the peak is from here on
        before = field('VmRSS')
        model.decide(counts)
        print(field('VmHWM') - before)
        """
    )
    assert int(used) <= (2_000_000 >> 10) + (16 << 10)


def test_a_forked_child_decides_as_its_parent():
    counts = np.random.default_rng(0).integers(0, 50, size=(50_000, 3))
    wanted = MODEL.decide(counts, n_threads=2)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe()

    def child():
        sender.send((MODEL.decide(counts, n_threads=2) == wanted).all())

    process = context.Process(target=child)
    process.start()
    assert receiver.poll(30)
    assert receiver.recv()
    process.join(30)
    assert process.exitcode == 0


def test_the_gil_is_free_while_a_kernel_runs():
    counts = np.random.default_rng(0).integers(200, 1000, size=(3_000_000, 3))
    ticks = 0
    done = threading.Event()

    def work():
        MODEL.predict_proba(counts)
        done.set()

    worker = threading.Thread(target=work)
    worker.start()
    while not done.is_set():
        ticks += 1
    worker.join()
    # With the GIL held this thread could not have counted far.
    assert ticks > 1000


def test_ctrl_c_ends_a_long_kernel():
    out = run(
        """
        import _thread, threading, time
        import numpy as np
        from btdagg import DavidsonModel

        model = DavidsonModel(1.2, 2.0, 0.8)
        counts = np.random.default_rng(0).integers(200, 100_000, size=(3_000_000, 3))
        started = time.perf_counter()
        model.predict_proba(counts)
        whole = time.perf_counter() - started
        threading.Timer(whole / 10, _thread.interrupt_main).start()
        started = time.perf_counter()
        try:
            for _ in range(50):
                model.predict_proba(counts)
        except KeyboardInterrupt:
            print('interrupted', model.decide_one(0, 0, 9))
        """
    )
    assert out == "interrupted 1\n"


def test_an_exception_of_a_signal_handler_comes_through_and_leaves_nothing_behind():
    out = run(
        """
        import signal
        import numpy as np
        from btdagg import DavidsonModel

        class Alarm(Exception):
            pass

        def ring(*_):
            raise Alarm

        signal.signal(signal.SIGALRM, ring)
        model = DavidsonModel(1.2, 2.0, 0.8)
        rows = np.broadcast_to(np.array([100, 2, 3]), (100_000_000, 3))
        labels = np.zeros(100_000_000, np.int8)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            model.drps(rows, labels)
        except Alarm:
            print('alarm')
        print(model.drps(rows[:2_000_000], labels[:2_000_000]) > 0)
        """
    )
    assert out == "alarm\nTrue\n"


def test_every_public_name_is_there():
    import btdagg

    assert all(getattr(btdagg, name) is not None for name in btdagg.__all__)
    assert dir(btdagg) == sorted(btdagg.__all__)
    with pytest.raises(AttributeError, match="btdagg attribute nothing"):
        _ = btdagg.nothing
