"""Opens a URL as an agent in Python would: open_url.py SERVER KEY_FILE CA_FILE METHOD URL. Prints the page, or the reason for a refusal."""
import pathlib
import ssl
import sys
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "tools/integrations/python"))

from pagegate_guard import Guard, RefusedError  # noqa: E402

server, key_file, ca_file, method, url = sys.argv[1:]
opener = Guard(server, key_file=key_file).opener(ssl.create_default_context(cafile=ca_file))
try:
    with opener.open(urllib.request.Request(url, method=method), timeout=30) as page:
        print(page.status, page.read().decode())
except RefusedError as refused:
    print("refused", refused)
