import java.nio.file.Path;
import java.util.List;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** A real node of OpenSearch on loopback: `SearchNode FOLDER PORT`. */
public final class SearchNode {
    private static final class PluginNode extends Node {
        PluginNode(Settings settings, Path home) {
            super(new Environment(settings, home), List.of(Netty4Plugin.class), false);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]);
        Settings settings = Settings.builder()
            .put("path.home", home)
            .put("cluster.name", "tests")
            .put("node.name", "tests")
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.port", arguments[1])
            .put("transport.port", "0")
            .put("http.type", "netty4")
            .put("transport.type", "netty4")
            .build();
        new PluginNode(settings, home).start();
        Thread.currentThread().join();
    }
}
