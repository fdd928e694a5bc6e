from tests.support.impression_servers import chosen, kind, module_server, server, use  # noqa: F401
from tests.support.seen_doors import connect, door, plays, service, start  # noqa: F401
