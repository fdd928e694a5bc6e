from tests.support.impression_servers import chosen, kind, module_server, server, use  # noqa: F401
