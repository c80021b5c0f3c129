package run;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Runs what the command line asks for and prints JSON objects, as interop/foreign says. */
public final class Scenarios {
    /** How long any single wait may take, and how long a whole scenario. */
    public static final int PATIENCE_MILLIS = 20_000;
    private static final int LIMIT_SECONDS = 90;

    public static final URI URL = URI.create(System.getenv("LETO_AMQP_URL"));

    private static final AtomicInteger serial = new AtomicInteger();

    private final Map<String, Body> bodies = new LinkedHashMap<>();

    public interface Body {
        void run() throws Exception;
    }

    public interface Exchange {
        void write(String address) throws Exception;

        void read(String address, int count) throws Exception;
    }

    public void add(String name, Body body) {
        bodies.put(name, body);
    }

    /** The whole of a program's main. */
    public static void main(String[] args, Scenarios scenarios, Scenarios restarts, Exchange exchange) {
        boolean good = true;
        try {
            switch (args[0]) {
                case "scenarios" -> good = scenarios.run(List.of(args).subList(1, args.length));
                case "restarts" -> good = restarts.run(List.of(args).subList(1, args.length));
                case "write" -> exchange.write(args[1]);
                case "read" -> exchange.read(args[1], Integer.parseInt(args[2]));
                default -> throw new IllegalArgumentException("what is " + args[0] + "?");
            }
        } catch (Throwable e) {
            e.printStackTrace();
            good = false;
        }
        Runtime.getRuntime().halt(good ? 0 : 1); // clients leave threads behind that aren't daemons
    }

    private boolean run(List<String> names) {
        boolean good = true;
        for (var scenario : bodies.entrySet()) {
            if (!names.isEmpty() && !names.contains(scenario.getKey())) {
                continue;
            }
            String text = outcome(scenario.getValue());
            good &= text.isEmpty();
            say("scenario", scenario.getKey(), "result", text.isEmpty() ? "pass" : "fail", "text", text);
        }
        return good;
    }

    private static String outcome(Body body) {
        var runner = Executors.newSingleThreadExecutor();
        try {
            runner.submit(() -> {
                body.run();
                return null;
            }).get(LIMIT_SECONDS, TimeUnit.SECONDS);
            return "";
        } catch (ExecutionException e) {
            var trace = new StringWriter();
            e.getCause().printStackTrace(new PrintWriter(trace));
            return trace.toString();
        } catch (TimeoutException | InterruptedException e) {
            return "still running after " + LIMIT_SECONDS + " s";
        } finally {
            runner.shutdownNow();
        }
    }

    /** An address, or a name, that nobody else uses. */
    public static String fresh(String what) {
        return "java-" + what + "-" + ProcessHandle.current().pid() + "-" + serial.incrementAndGet();
    }

    public static String mark() {
        return UUID.randomUUID().toString();
    }

    /** Has the broker killed and started again. */
    public static void restart() throws Exception {
        say("ask", "restart");
        new BufferedReader(new InputStreamReader(System.in)).readLine();
    }

    /** Prints a JSON object of keys and values. */
    public static void say(String... pairs) {
        var line = new StringBuilder("{");
        for (int i = 0; i < pairs.length; i += 2) {
            line.append(i > 0 ? "," : "").append(quote(pairs[i])).append(':').append(quote(pairs[i + 1]));
        }
        synchronized (System.out) {
            System.out.println(line.append('}'));
            System.out.flush();
        }
    }

    private static String quote(String s) {
        var quoted = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\' || c < ' ' || c > '~') {
                quoted.append(String.format("\\u%04x", (int) c));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append('"').toString();
    }

    /** A message that this program is asked to write. */
    public record Specimen(String name, byte[] encoded) {
    }

    public static List<Specimen> specimens() throws Exception {
        var all = new ArrayList<Specimen>();
        Matcher each = Pattern.compile("\"encoded\":\"([0-9a-f]*)\",\"name\":\"([^\"]*)\"")
            .matcher(Files.readString(Path.of(System.getenv("LETO_SPECIMENS"))));
        while (each.find()) {
            all.add(new Specimen(each.group(2), java.util.HexFormat.of().parseHex(each.group(1))));
        }
        return all;
    }

    public static void equal(Object got, Object want) {
        if (!Objects.deepEquals(got, want)) {
            throw new AssertionError("got " + show(got) + ", want " + show(want));
        }
    }

    public static void ensure(boolean is, String what) {
        if (!is) {
            throw new AssertionError("not so: " + what);
        }
    }

    private static String show(Object o) {
        return o instanceof byte[] b ? b.length + " bytes" : o + (o == null ? "" : " (" + o.getClass().getSimpleName() + ")");
    }

    /** The error that something has to end with, and soon. */
    public static Throwable refused(Body body) {
        long began = System.nanoTime();
        try {
            body.run();
        } catch (Throwable e) {
            ensure(System.nanoTime() - began < TimeUnit.SECONDS.toNanos(10), "the refusal comes within 10 s");
            return e;
        }
        throw new AssertionError("nothing was refused");
    }
}
