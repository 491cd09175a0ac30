"""The server: a page and an API behind a secret path, for this machine alone.

Every path starts with the token, so that neither another page in the browser nor another user of
the machine can reach the API. On top of it, a request must name a loopback host (which refuses DNS
rebinding), come from the page itself if it says where it comes from, be JSON, and be small.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from giantsteps.errors import GiantstepsError, InvalidProblem
from giantsteps.explorer._compute import OPERATIONS, plain, problem_error
from giantsteps.explorer._pool import Busy, Pool, TooLong
from giantsteps.explorer._requests import BODY, Simulation
from giantsteps.explorer._schema import schema
from giantsteps.explorer._simulations import AlreadyRunning, Jobs, default_store
from giantsteps.explorer._states import DEFAULT, GALLERY, TOUR

PAGE = Path(__file__).parent / "page"
#: Files of the page that may be fetched: everything below `PAGE`, by name.
FILES = {path.relative_to(PAGE).as_posix(): path for path in PAGE.rglob("*") if path.is_file()}
_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".txt": "text/plain",
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; "
    "style-src 'self' 'unsafe-inline'; font-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a server is started with."""

    token: str  # the secret of the URL
    problem: dict[str, Any] | None = None  # where the page starts, as plain data
    host: str = "127.0.0.1"  # the name that requests must use, beside those of the loopback
    time_limit: float = 60.0  # seconds per request
    workers: int | None = None  # processes for theory; by default one per processor, at least two
    store: Path | None = None  # keeps the simulations


class _Refused(Exception):
    """A request that is not served: status and reason."""

    def __init__(self, status: int, reason: str) -> None:
        self.status, self.reason = status, reason


def application(settings: Settings) -> Starlette:
    server = _Server(settings)
    methods = {"ask": "POST", "plane": "POST", "function": "POST", "take": "POST", "figure": "POST"}
    assert methods.keys() == OPERATIONS.keys()
    routes = [
        Route("/{token}/schema", server.guarded(server.schema)),
        Route("/{token}/start", server.guarded(server.start_state)),
        Route("/{token}/simulate", server.guarded(server.simulate), methods=["POST"]),
        Route(
            "/{token}/simulate/{job}", server.guarded(server.simulation), methods=["GET", "DELETE"]
        ),
        *(
            Route(f"/{{token}}/{name}", server.guarded(server.operation(name)), methods=[method])
            for name, method in methods.items()
        ),
        Route("/{token}/{file:path}", server.guarded(server.file)),
        Route("/{rest:path}", server.nothing, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
    ]
    app = Starlette(routes=routes, lifespan=server.lifespan)
    app.state.stopping = server.stopping
    return app


Handler = Callable[[Request], Awaitable[Response]]


class _Server:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.hosts = {*_LOOPBACK, settings.host}
        self.stopping = asyncio.Event()  # set when the server is about to stop

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        settings = self.settings
        self.pool = Pool(settings.workers, settings.time_limit)
        self.jobs = Jobs(settings.store or default_store(), self.pool.places)
        warming = asyncio.ensure_future(self.pool.start())
        try:
            yield
        finally:
            warming.cancel()
            await asyncio.gather(warming, return_exceptions=True)
            await asyncio.to_thread(self.jobs.close)
            await self.pool.close()

    # Who may ask ------------------------------------------------------------------------------

    def guarded(self, handler: Handler) -> Handler:
        """Check a request before it is handled, and say in one way why it is refused."""

        async def endpoint(request: Request) -> Response:
            try:
                self._check(request)
                response = await handler(request)
            except _Refused as refused:
                error = {"type": "Refused", "message": refused.reason}
                response = JSONResponse({"error": error}, status_code=refused.status)
            except GiantstepsError as error:
                response = JSONResponse({"error": problem_error(error)}, _status(error))
            response.headers.update(_HEADERS)
            return response

        return endpoint

    def _check(self, request: Request) -> None:
        if not hmac.compare_digest(
            request.path_params["token"].encode(), self.settings.token.encode()
        ):
            raise _Refused(404, "not found")
        name, _, _ = request.headers.get("host", "").rpartition(":")
        host = name or request.headers.get("host", "")
        if host not in self.hosts:
            raise _Refused(403, "this server answers requests for the loopback address only")
        origin = request.headers.get("origin")
        if origin is not None and origin != f"http://{request.headers['host']}":
            raise _Refused(403, "requests from other pages are refused")
        if (
            request.headers.get("sec-fetch-site", "none") == "cross-site"
            and request.method != "GET"
        ):
            raise _Refused(403, "requests from other pages are refused")

    async def nothing(self, request: Request) -> Response:
        """What has no token does not exist."""
        return JSONResponse({"error": {"type": "Refused", "message": "not found"}}, 404)

    # Answers ----------------------------------------------------------------------------------

    def operation(self, name: str) -> Handler:
        """A request that a worker computes; it ends when the client goes away."""

        async def answer(request: Request) -> Response:
            body = await _json(request)
            work = asyncio.ensure_future(self.pool.run(name, body))
            gone = asyncio.ensure_future(_disconnected(request))
            stopping = asyncio.ensure_future(self.stopping.wait())
            try:
                await asyncio.wait({work, gone, stopping}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (gone, stopping, work):
                    if not task.done():
                        task.cancel()
            if not work.done() or work.cancelled():
                raise _Refused(503, "the explorer is stopping, or the client has gone")
            found = work.result()
            if "error" in found:
                return JSONResponse(
                    found, 500 if found["error"]["type"] == "InternalError" else 422
                )
            return JSONResponse(found["ok"])

        return answer

    async def schema(self, request: Request) -> Response:
        return JSONResponse(plain(schema(self.settings.time_limit)))

    async def start_state(self, request: Request) -> Response:
        problem = self.settings.problem
        return JSONResponse(
            {
                "problem": problem or DEFAULT.to_data(),
                "gallery": [entry.to_data() for entry in GALLERY],
                "tour": [stop.to_data() for stop in TOUR],
                "store": str(self.jobs.store),
            }
        )

    async def simulate(self, request: Request) -> Response:
        body = await _json(request)
        # Checked in a thread: a grid of many cells takes a moment.
        asked = await asyncio.to_thread(_read_simulation, body)
        job = await asyncio.to_thread(self.jobs.start, asked)
        return JSONResponse(plain(job.to_data()), 202)

    async def simulation(self, request: Request) -> Response:
        job = self.jobs.get(request.path_params["job"])
        if job is None:
            raise _Refused(404, "no such simulation")
        if request.method == "DELETE":
            job.cancel()
        return JSONResponse(plain(job.to_data()))

    async def file(self, request: Request) -> Response:
        name = request.path_params["file"] or "index.html"
        path = FILES.get(name)
        if path is None:
            raise _Refused(404, "not found")
        return FileResponse(path, media_type=_TYPES.get(path.suffix, "application/octet-stream"))


def _read_simulation(body: Any) -> Simulation:
    try:
        return Simulation.read(body)
    except (RecursionError, OverflowError) as error:
        raise InvalidProblem("body", "too deep", f"a plain request ({error})") from None


async def _json(request: Request) -> Any:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise _Refused(415, "the body must be application/json")
    text = bytearray()
    async for chunk in request.stream():
        text += chunk
        if len(text) > BODY:
            raise _Refused(413, f"the body must have at most {BODY} bytes")
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise _Refused(400, f"the body must be valid JSON ({error})") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _status(error: GiantstepsError) -> int:
    kinds = {Busy: 503, TooLong: 504, AlreadyRunning: 409, InvalidProblem: 422}
    return kinds.get(type(error), 500)
