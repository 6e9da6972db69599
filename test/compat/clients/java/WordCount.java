import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts words exactly once: WordCount BROKERS APPLICATION INPUT OUTPUT STATE_DIR. Each word of a line of INPUT gives
 * one record in OUTPUT: the word and how often it was seen, as text. Nothing is cached, so the counts of a word
 * are 1, 2, 3 and so on. The store is in memory; a start restores it from its changelog topic.
 */
public final class WordCount {
    public static void main(String[] args) throws InterruptedException {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("application.id", args[1]);
        p.put("state.dir", args[4]);
        p.put("processing.guarantee", "exactly_once_v2");
        p.put("num.stream.threads", 2);
        p.put("commit.interval.ms", 200);
        p.put("statestore.cache.max.bytes", 0);
        p.put("default.key.serde", Serdes.StringSerde.class);
        p.put("default.value.serde", Serdes.StringSerde.class);
        p.put("auto.offset.reset", "earliest");
        p.put("session.timeout.ms", 6000); // the least that a broker allows by default
        p.put("heartbeat.interval.ms", 1000);
        p.put("reconnect.backoff.max.ms", 200);
        p.put("producer.transaction.timeout.ms", 5000);
        p.put("producer.linger.ms", 5);

        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(args[2])
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.as("words"))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(args[3], Produced.with(Serdes.String(), Serdes.String()));

        KafkaStreams streams = new KafkaStreams(builder.build(), p);
        streams.setUncaughtExceptionHandler(e -> {
            e.printStackTrace();
            System.out.println("replaced a thread");
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            if (streams.close(Duration.ofSeconds(20))) {
                System.out.println("closed");
            }
        }));
        streams.start();
        Thread.currentThread().join();
    }
}
