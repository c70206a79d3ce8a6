"""A scripted model server on loopback: what the vendors' CLIs talk to in the tests.

    with FakeModel() as model:
        model.script("hello", [{"tools": [{"write": {"path": "a.txt", "content": "hi"}}]}, "Done."])
        model.url("hello")        # http://127.0.0.1:PORT/s/hello: the base URL of any of the four dialects
        model.requests("hello")   # every request as it came, newest last

A scenario is a mapping (`scenarios.Scenario` has the keys), a list of steps, a text, or a
function from the request to a step. A step is a text or a mapping with `text`, `tools`,
`fault`, `usage`. Nothing here keeps a counter for steps: the step is the number of tool
results after the last user message, so retries, parallel CLIs and resumes need no care.
"""

from modelserver.asked import Asked as Asked
from modelserver.asked import Tool as Tool
from modelserver.server import FakeModel as FakeModel
from modelserver.vendors import toml_tables as toml_tables
from modelserver.vendors import vendor_config as vendor_config
