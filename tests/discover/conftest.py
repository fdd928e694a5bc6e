from tests.support.impression_servers import chosen, kind, module_server, server, use  # noqa: F401
from tests.support.recommending import newest_first, opensearch, page, publish, search_node  # noqa: F401
