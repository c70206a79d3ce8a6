"""The real CLIs with `network = "vendor"`: their vendor is behind TLS, and nothing else is reached."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from rondel.model.outcomes import Ended
from rondel.sandbox import namespaces
from rondel.sandbox.box import Box, holds, own_places
from support.outside import certificate, proxy_to, tls_before

pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(not holds() or bool(namespaces.missing()), reason="no network can be closed here"),
]
WRITE = {"tools": [{"write": {"path": "hello.txt", "content": "hi from the model\n"}}]}


def test_a_real_cli_reaches_its_vendor_and_nobody_else(rig, tmp_path, monkeypatch):
    """Through the person's own proxy, which is asked for the vendor's host alone."""
    real = urlsplit(rig.model.url("it"))
    authority, asked = certificate(tmp_path, "model.test"), []
    with tls_before(real.port, authority) as tls, proxy_to({"model.test:443": tls}, asked) as company:
        monkeypatch.setattr(type(rig.model), "url", lambda *_: f"https://model.test{real.path}")
        for name in ("HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{company}")
        for name in ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"):
            monkeypatch.setenv(name, str(authority))
        box = Box(read=(str(authority),), hidden=own_places(), network="vendor")
        reply = rig.ask([WRITE, "Done."], request=rig.request(box=box))
    assert (reply.ended, reply.text) == (Ended.DONE, "Done."), reply.error
    assert (rig.repository / "hello.txt").read_text() == "hi from the model\n"
    assert set(asked) == {"model.test:443"}
