import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The consume verb of ../README.md: GroupMember BROKERS GROUP OUT TOPIC... */
public final class GroupMember {
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final BufferedOutputStream out;
    private long written;
    private long committed;
    private volatile boolean stopping;

    private GroupMember(String brokers, String group, String path) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", brokers);
        config.put("group.id", group);
        config.put("group.protocol", System.getProperty("group.protocol", "classic"));
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("max.poll.records", "5000");
        if (!"consumer".equals(config.get("group.protocol"))) {
            config.put("session.timeout.ms", "10000");
            config.put("heartbeat.interval.ms", "1000");
            config.put("partition.assignment.strategy", CooperativeStickyAssignor.class.getName());
        }
        consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        out = new BufferedOutputStream(new FileOutputStream(path, true), 1 << 20);
    }

    public static void main(String[] args) throws Exception {
        GroupMember member = new GroupMember(args[0], args[1], args[2]);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            member.stopping = true;
            member.consumer.wakeup();
            try {
                main.join(20_000);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            // The JVM's own status after SIGTERM is 143; a clean end is 0.
            Runtime.getRuntime().halt(main.isAlive() ? 1 : 0);
        }));
        member.run(List.of(args).subList(3, args.length));
    }

    private void run(List<String> topics) throws Exception {
        consumer.subscribe(topics, new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
                commit();
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
            }
        });
        try {
            while (!stopping) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    write(record);
                }
                commit();
            }
        } catch (WakeupException e) {
            // Stopping: what was written is committed, or it is delivered again.
        } finally {
            consumer.close();
        }
    }

    private void write(ConsumerRecord<byte[], byte[]> record) throws Exception {
        String place = record.topic() + "\t" + record.partition() + "\t" + record.offset() + "\t";
        out.write(place.getBytes(StandardCharsets.US_ASCII));
        out.write(record.key());
        out.write('\t');
        out.write(record.value());
        out.write('\n');
        written++;
    }

    private void commit() {
        if (committed == written) {
            return;
        }
        try {
            out.flush();
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
        try {
            consumer.commitSync();
        } catch (RebalanceInProgressException | CommitFailedException | WakeupException e) {
            // The records stay this member's; its next commit covers them.
            return;
        }
        committed = written;
        System.out.println("committed " + committed);
    }
}
