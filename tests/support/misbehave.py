"""A program that misbehaves in the way its first argument names."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time


def say(text):
    print(text, flush=True)


def ignore_term():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def never_exits_after_its_result():
    say("the answer")
    say("RESULT")
    time.sleep(600)


def ignores_sigterm():
    ignore_term()
    say("busy")
    time.sleep(600)


def reads_stdin_for_ever():
    while sys.stdin.read(1000):
        pass
    say("stdin ended")


def detached(seconds=600):
    """A grandchild in a session of its own whose parent is gone."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            ignore_term()
            say(f"grandchild {os.getpid()}")
            time.sleep(seconds)
        os._exit(0)
    os.wait()


def leaves_grandchildren():
    for _ in range(3):
        detached()
    subprocess.Popen(["sleep", "600"], start_new_session=True)  # holds our pipes
    say("the answer")


def leaves_grandchildren_and_hangs():
    leaves_grandchildren()
    time.sleep(600)


def leaves_children_that_close_their_pipes():
    if os.fork() == 0:
        os.setsid()
        for fd in range(3):
            os.close(fd)
        time.sleep(600)
    say("the answer")


def leaves_one_whose_first_thread_has_ended():
    """The kernel shows it as one that has ended and waits to be collected."""
    if os.fork() == 0:
        os.setsid()
        ignore_term()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        threading.Thread(target=time.sleep, args=(600,)).start()
        ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)  # of this thread alone
    time.sleep(0.2)
    say("the answer")


def forks_for_ever():
    ignore_term()
    say("busy")
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if os.fork():
            time.sleep(0.01)
            os._exit(0)
        os.setsid()


def prints_200_mb():
    block = b"x" * 999_999 + b"\n"
    for _ in range(200):
        os.write(1, block)


def prints_one_endless_line():
    for _ in range(200):
        os.write(1, b"x" * 1_000_000)


def prints_200_mb_on_stderr():
    block = b"x" * 999_999 + b"\n"
    for _ in range(200):
        os.write(2, block)


def invalid_utf8():
    os.write(1, b"caf\xe9 \xff\xfe ok\n")


def truncated_json():
    os.write(1, b'{"type":"result","text":"hal')


def exits_0_with_nothing():
    pass


def hangs_silently():
    time.sleep(600)


def dies_by_a_signal():
    say("going")
    os.kill(os.getpid(), signal.SIGSEGV)


def reports_a_usage_limit():
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    print(f"limit reached\nRONDEL_PARK {soon}", file=sys.stderr)
    sys.exit(75)


def fails():
    say("half an answer")
    print("one\ntwo\nthe model is on fire", file=sys.stderr)
    sys.exit(3)


def talks(lines=5, pause_s=0.1):
    for n in range(lines):
        say(f"line {n}")
        time.sleep(pause_s)


def talks_slowly():
    talks(9, 0.5)


def stops_itself():
    os.kill(os.getpid(), signal.SIGSTOP)


globals()[sys.argv[1]]()
