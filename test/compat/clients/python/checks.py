"""Counts and prints everyday checks as ../README.md says."""

import asyncio
import sys
import time
import traceback


class Checks:
    def __init__(self):
        self.failed = False

    def ok(self, name: str) -> None:
        print(f"ok {name}", flush=True)

    def not_ok(self, name: str, error: BaseException) -> None:
        self.failed = True
        traceback.print_exception(error)
        why = " ".join(str(error).split()) or type(error).__name__
        print(f"not ok {name}: {type(error).__name__}: {why}", flush=True)

    def not_applicable(self, name: str, why: str) -> None:
        print(f"n/a {name}: {why}", flush=True)

    def run(self, name: str, check) -> None:
        try:
            check()
        except Exception as error:  # each check stands alone
            self.not_ok(name, error)
        else:
            self.ok(name)

    async def run_async(self, name: str, check) -> None:
        try:
            await check()
        except Exception as error:
            self.not_ok(name, error)
        else:
            self.ok(name)

    def finish(self) -> None:
        sys.exit(1 if self.failed else 0)


def equal(got, want) -> None:
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


# A broker may answer before its metadata shows what it did.
SETTLE_SECONDS = 10


def eventually(get, want) -> None:
    end = time.monotonic() + SETTLE_SECONDS
    while (got := get()) != want and time.monotonic() < end:
        time.sleep(0.05)
    equal(got, want)


async def eventually_async(get, want) -> None:
    end = time.monotonic() + SETTLE_SECONDS
    while (got := await get()) != want and time.monotonic() < end:
        await asyncio.sleep(0.05)
    equal(got, want)
