"""An empty Starlette endpoint, for `benchmarks.serve`: it prints its address and answers nothing to everything."""

import socket
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def empty(request: Request) -> Response:
    return Response()


def main() -> None:
    bound = socket.create_server(("127.0.0.1", 0))
    app = Starlette(routes=[Route("/", empty, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    print(f"The endpoint is at http://127.0.0.1:{bound.getsockname()[1]}", file=sys.stderr, flush=True)
    server.run(sockets=[bound])


if __name__ == "__main__":
    main()
