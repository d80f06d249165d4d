"""A serving engine from first principles: arrivals, a scheduler with a budget and a pool of blocks, the cost of steps.

It keeps its own books of what every step waited for (`Books`), so that a scenario can prove that it shows what its name
says before anybody judges it.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator

from doctor.scenarios.costs import cost
from doctor.scenarios.plant import Card
from doctor.scenarios.values import EDGES, Books, Request, Setup, State, Traffic, Turn

_TURN_S = 0.05
"""Decode steps of equal cost are taken together up to this long."""


class Serving:
    """One engine on its cards; `run` lets time pass and `history` holds what was published when."""

    def __init__(self, setup: Setup, traffic: Traffic, *, cards: list[Card], dice: random.Random) -> None:
        self.setup = setup
        self.cards = cards
        self.books = Books()
        self.history: list[State] = [State()]
        self.engine_cpu: list[tuple[float, float, float]] = []
        self.wedged_at = float("inf")
        self.traffic = traffic
        self._dice = dice
        self._arrivals = self._of_their_own_accord()
        self._next = next(self._arrivals, None)
        self._returning: list[float] = [traffic.starts_s + dice.random() * 0.5 for _ in range(traffic.users)]
        self._waiting: deque[Request] = deque()
        self._running: list[Request] = []
        self._serve_free = 0.0
        self._served = [(0.0, 0.0, 0.0)]
        self._met: set[tuple[str, int]] = set()
        self.state = State()

    def run(self, until: float) -> None:
        """Let time pass."""
        now = self.state.time
        while now < min(until, self.wedged_at):
            self._arrive(now)
            chunks, decoding = self._schedule(now)
            if not chunks and not decoding:
                now = self._rest(now, until)
                continue
            now = self._step(now, chunks, decoding=decoding)
        self.state.time = max(now, until)

    def _of_their_own_accord(self) -> Iterator[float]:
        time = self.traffic.starts_s
        while self.traffic.rate > 0:
            time += self._dice.expovariate(self.traffic.rate)
            yield time

    def _arrive(self, now: float) -> None:
        """Every request goes through the process that serves HTTP, one after the other."""
        while self._next is not None and self._next <= now:
            self._ask(self._next)
            self._next = next(self._arrivals, None)
        due = [time for time in self._returning if time <= now]
        self._returning = [time for time in self._returning if time > now]
        for time in sorted(due):
            self._ask(time)

    def _ask(self, time: float) -> None:
        prompt = self._size(self.traffic.prompt)
        hits = int(prompt * self.traffic.cached)
        self._serve(time, self.setup.serve_request_s + prompt * 1.2e-6)
        request = Request(max(time, self._serve_free), max(1, prompt - hits), self._size(self.traffic.output), prompt)
        request.hits = hits
        self._waiting.append(request)

    def _size(self, mean: int) -> int:
        return max(1, int(mean * self._dice.lognormvariate(-(self.traffic.spread**2) / 2, self.traffic.spread)))

    def _serve(self, now: float, work_s: float) -> None:
        self._serve_free = max(self._serve_free, now) + work_s
        self.state.serve_cpu_s += work_s
        self._served.append((max(now, self._served[-1][0]), self._serve_free, self.state.serve_cpu_s))

    def served(self, now: float) -> float:
        """Processor time that the process which serves HTTP has spent: it cannot spend what is still before it."""
        _, free, work_s = self._at(now)
        return work_s - max(0.0, free - now)

    def serve_late(self, now: float) -> float:
        """How long whoever asks it now waits for his turn."""
        return max(0.0, self._at(now)[1] - now)

    def _at(self, now: float) -> tuple[float, float, float]:
        place = bisect_right(self._served, now, key=lambda entry: entry[0])
        return self._served[max(0, place - 1)]

    def _used(self) -> int:
        return sum(request.context for request in self._running)

    def _schedule(self, now: float) -> tuple[list[tuple[Request, int]], list[Request]]:
        """Decoding first, then prompts that were begun, then new ones, within budget, cap and pool."""
        setup = self.setup
        free = setup.kv_tokens - self._used()
        decoding = [request for request in self._running if not request.prefill]
        while len(decoding) > free and self._running:
            free += self._preempt()
            decoding = [request for request in self._running if not request.prefill]
        free -= len(decoding)
        budget = setup.budget - len(decoding)
        chunks: list[tuple[Request, int]] = []
        for request in self._running:
            if request.prefill and budget > 0 and free > 0:
                size = min(request.prefill, budget, free)
                chunks.append((request, size))
                budget, free = budget - size, free - size
        full = False
        while self._waiting and budget > 0 and self._waiting[0].born <= now:
            if len(self._running) >= setup.max_num_seqs:
                self.books.at_cap += 1
                break
            request = self._waiting[0]
            size = min(request.prefill, budget)
            if request.hits + size > free:
                full = True
                break
            self._admit(request, now)
            chunks.append((request, size))
            budget, free = budget - size, free - size - request.hits
        self.books.no_room += full
        self.books.turns += 1
        return chunks, decoding

    def _admit(self, request: Request, now: float) -> None:
        self._waiting.popleft()
        self._running.append(request)
        request.context = request.hits
        if not request.told:
            self.state.queue_s += now - request.born
            self.state.queued += 1
            self.state.queries += request.prompt
            self.state.hits += request.hits

    def _preempt(self) -> int:
        """The youngest gives its blocks back and will be computed again."""
        victim = self._running.pop()
        freed = victim.context
        victim.prefill += victim.context
        victim.context = victim.hits = 0
        victim.told = True
        self._waiting.appendleft(victim)
        self.state.preemptions += 1
        return freed

    def _rest(self, now: float, until: float) -> float:
        """Nothing to do until somebody asks."""
        ahead = [time for time in (self._next, *self._returning) if time is not None]
        ahead += [request.born for request in self._waiting]
        end = min(until, max(now + 0.002, min([time for time in ahead if time > now], default=until)))
        end = min(end, now + 0.5)
        for card in self.cards:
            card.run(now, end, resident=0.0, memory=0.0, arithmetic=0.0)
        self.books.nothing += end - now
        self.engine_cpu.append((now, end, 0.02 * (end - now)))
        self._publish(end)
        return end

    def _step(self, now: float, chunks: list[tuple[Request, int]], *, decoding: list[Request]) -> float:
        tokens = sum(size for _, size in chunks)
        context = self._used() + tokens
        turn = self.cost(tokens, len(decoding), context=context)
        compiled = self._compile(now, tokens, decoding=len(decoding))
        now += compiled
        times = 1 if chunks or not decoding else self._together(turn, decoding)
        end = now + turn.whole * times
        self._spend(now, end, turn=turn, times=times)
        self._account(turn, times)
        self._advance(end, chunks, decoding=decoding, times=times)
        return end

    def cost(self, prefill: int, decoding: int, *, context: int) -> Turn:
        """What one step costs, with every card's clock as it is."""
        mean = context / max(1, len(self._running))
        return cost(self.setup, self.cards, prefill=prefill, decoding=decoding, context=(context, mean))

    def _together(self, turn: Turn, decoding: list[Request]) -> int:
        room = (self.setup.kv_tokens - self._used()) // max(1, len(decoding))
        soonest = min(request.output for request in decoding)
        return max(1, min(int(_TURN_S / turn.whole), soonest, room))

    def _compile(self, now: float, tokens: int, *, decoding: int) -> float:
        """Kernels are made for a shape when it is first met; one card may wait for another meanwhile."""
        if not self.setup.compile_s:
            return 0.0
        new = {("prefill", tokens.bit_length()), ("decode", decoding.bit_length())} - self._met
        new = {shape for shape in new if shape[1]}
        self._met |= new
        took = sum(self.setup.compile_s * self._dice.uniform(0.5, 1.6) for _ in new)
        self.books.compiling += took
        end = now + took
        while now < end:
            then = min(end, now + 0.25)
            for place, card in enumerate(self.cards):
                waits = (then - now) if place and len(self.cards) > 1 else 0.0
                card.run(now, then, resident=waits, memory=0.0, arithmetic=0.0)
            self.engine_cpu.append((now, then, then - now))
            marked = self.state.copy()
            marked.time, marked.compiling = then, True
            self.history.append(marked)
            now = then
        return took

    def _spend(self, begin: float, end: float, *, turn: Turn, times: int) -> None:
        slowest = max(turn.kernels)
        link = self.setup.link
        together = len(self.cards) // self.setup.stages > 1 or self.setup.stages > 1
        for place, card in enumerate(self.cards):
            resident = (slowest if together else turn.kernels[place]) + turn.link
            moved = turn.link_bytes * times
            outside = self.setup.offloaded_bytes * times / len(self.cards)
            card.run(
                begin,
                end,
                resident=resident * times,
                memory=turn.memory[place] * times * 0.92,
                arithmetic=turn.arithmetic[place] * times * card.clock,
                pcie_in=(0.0 if link.nvlink else moved) + outside + 2e6 * (end - begin),
                pcie_out=(0.0 if link.nvlink else moved) + 2e6 * (end - begin),
                nvlink=moved if link.nvlink else 0.0,
            )
        self.engine_cpu.append((begin, end, min(end - begin, turn.processor * times)))

    def _account(self, turn: Turn, times: int) -> None:
        parts = {
            "arithmetic": max(turn.arithmetic),
            "memory": max(turn.memory),
            "link": max(turn.link, turn.host),
            "processor": turn.processor,
        }
        slowest = max(parts, key=parts.__getitem__)
        setattr(self.books, slowest, getattr(self.books, slowest) + turn.whole * times)

    def _advance(self, now: float, chunks: list[tuple[Request, int]], *, decoding: list[Request], times: int) -> None:
        out = prompts = 0
        for request, size in chunks:
            request.prefill -= size
            request.context += size
            if not request.prefill:
                out += 1
                request.output -= 1
                prompts += 0 if request.told else request.prompt
                request.told = True
        for request in decoding:
            request.output -= times
            request.context += times
        out += len(decoding) * times
        self._count(now, prompts, out=out, times=times)
        for request in [request for request in self._running if not request.prefill and request.output <= 0]:
            self._running.remove(request)
            self.state.finished += 1
            if self.traffic.users:
                self._returning.append(max(now, self._serve_free) + self._think())
        self._publish(now)

    def _think(self) -> float:
        return self._dice.expovariate(1 / self.traffic.think_s) if self.traffic.think_s else 0.0

    def _count(self, now: float, prompts: int, *, out: int, times: int) -> None:
        state = self.state
        state.prompt_tokens += prompts
        state.generation_tokens += out
        if out:
            state.iterations += times
            state.iteration_tokens += prompts + out
            state.steps_by_size = tuple(
                count + times * ((prompts + out) / times <= edge)
                for count, edge in zip(state.steps_by_size, EDGES, strict=True)
            )
        self._serve(now, out * self.setup.serve_token_s)

    def _publish(self, now: float) -> None:
        state = self.state
        state.time = now
        state.running, state.waiting = len(self._running), sum(request.born <= now for request in self._waiting)
        state.kv = self._used() / self.setup.kv_tokens
        self.history.append(state.copy())
