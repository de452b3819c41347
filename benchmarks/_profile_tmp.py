import asyncio
import subprocess
import sys
import time

import psutil
import uvloop

from benchmarks import load
from benchmarks.measure import Tree
from benchmarks.stack import running


def main(clients, seconds, spy):
    with running(say=lambda _: None) as stack:
        target = load.parley(stack.web_port, stack.token, "bench")

        async def go(n, secs):
            runs = []
            end = time.perf_counter() + secs

            async def client():
                while time.perf_counter() < end:
                    r = await load.run_once(target, "tokens=1 delay_ms=0", limit_s=60)
                    runs.append(r)
                    if r.error:
                        print(r.error)
                        break

            await asyncio.gather(*(client() for _ in range(n)))
            return runs

        uvloop.run(go(4, 2))
        ps = []
        if spy:
            for name, pid in (("web", stack.web_pid), ("worker", stack.worker_pids[0])):
                ps.append(
                    subprocess.Popen(
                        [
                            "/tmp/w/spy/bin/py-spy",
                            "record",
                            "-p",
                            str(pid),
                            "-d",
                            str(seconds - 1),
                            "-r",
                            "400",
                            "-f",
                            "raw",
                            "-o",
                            f"/tmp/w/prof-{name}.txt",
                            "-n" if False else "-t",
                        ],
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                    )
                )
        names = {}
        for pid in stack.pids:
            p = psutil.Process(pid)
            c = p.cmdline()
            names[pid] = next((c[c.index("manage.py") + 1] for _ in [0] if "manage.py" in c), p.name())
        trees = {pid: Tree([pid]) for pid in stack.pids}
        before = {pid: t.cpu_s() for pid, t in trees.items()}
        t0 = time.perf_counter()
        runs = uvloop.run(go(clients, seconds))
        w = time.perf_counter() - t0
        good = [r for r in runs if not r.error]
        print(
            f"{len(good) / w:.0f} runs/s",
            {
                names[pid]: round(1000 * (t.cpu_s() - before[pid]) / len(good), 2)
                for pid, t in trees.items()
            },
            "total",
            round(1000 * sum(t.cpu_s() - before[pid] for pid, t in trees.items()) / len(good), 2),
            flush=True,
        )
        for p in ps:
            p.wait()


main(int(sys.argv[1]), int(sys.argv[2]), len(sys.argv) > 3)
