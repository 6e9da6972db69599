import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Every word of a share consumer: Share BROKERS GROUP TOPIC DEAD_TOPIC. The topic is empty and has one partition;
 * the group begins at the earliest record, copies what dies to DEAD_TOPIC, and locks records for LOCK.
 */
public final class Share {
    private static final Duration LIMIT = Duration.ofSeconds(40);
    private static final Duration LOCK = Duration.ofSeconds(15);

    private final String brokers;
    private final String group;
    private final String topic;
    private final String dead;
    private boolean failed;
    private long next; // offset of the next record that is sent

    /** One check; what it throws is why it is not ok. */
    private interface Check {
        void run() throws Exception;
    }

    private Share(String[] args) {
        brokers = args[0];
        group = args[1];
        topic = args[2];
        dead = args[3];
    }

    public static void main(String[] args) {
        Share s = new Share(args);
        s.check("accept", s::accept);
        s.check("release", s::release);
        s.check("reject to the dead letters", s::reject);
        s.check("dead letters keep headers", s::deadHeaders);
        s.check("renew", s::renew);
        s.check("lock expiry", s::expiry);
        s.check("two members share", s::twoMembers);
        System.exit(s.failed ? 1 : 0);
    }

    private void check(String name, Check check) {
        try {
            check.run();
            System.out.println("ok " + name);
        } catch (Throwable e) {
            failed = true;
            e.printStackTrace();
            System.out.println("not ok " + name + ": " + String.valueOf(e).replaceAll("\\s+", " "));
        }
    }

    private static void equal(Object got, Object want) {
        if (!want.equals(got)) {
            throw new AssertionError("got " + got + ", want " + want);
        }
    }

    private Properties properties() {
        Properties p = new Properties();
        p.put("bootstrap.servers", brokers);
        return p;
    }

    private KafkaShareConsumer<String, String> member() {
        Properties p = properties();
        p.put("group.id", group);
        p.put("share.acknowledgement.mode", "explicit");
        KafkaShareConsumer<String, String> c =
            new KafkaShareConsumer<>(p, new StringDeserializer(), new StringDeserializer());
        c.subscribe(List.of(topic));
        return c;
    }

    /** Sends count records and gives the offset of the first. */
    private long send(int count) throws Exception {
        long first = next;
        try (KafkaProducer<String, String> producer =
            new KafkaProducer<>(properties(), new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < count; i++) {
                String n = Long.toString(next);
                ProducerRecord<String, String> record = new ProducerRecord<>(topic, "key-" + n, "value-" + n);
                record.headers().add("own", n.getBytes());
                equal(producer.send(record).get().offset(), next);
                next++;
            }
        }
        return first;
    }

    /** Polls until something comes. */
    private static List<ConsumerRecord<String, String>> take(KafkaShareConsumer<String, String> c) {
        List<ConsumerRecord<String, String>> taken = new ArrayList<>();
        long end = System.nanoTime() + LIMIT.toNanos();
        while (taken.isEmpty() && System.nanoTime() < end) {
            c.poll(Duration.ofMillis(500)).forEach(taken::add);
        }
        return taken;
    }

    private static void commit(KafkaShareConsumer<String, String> c) {
        for (Map.Entry<TopicIdPartition, Optional<KafkaException>> e : c.commitSync().entrySet()) {
            equal(e.getValue(), Optional.empty());
        }
    }

    /** Takes records until each offset from first on, count of them, came; says how to acknowledge each. */
    private static void work(KafkaShareConsumer<String, String> c, long first, int count, int delivery, AcknowledgeType type) {
        for (int got = 0; got < count;) {
            List<ConsumerRecord<String, String>> taken = take(c);
            if (taken.isEmpty()) {
                throw new AssertionError("only " + got + " of " + count + " records came");
            }
            for (ConsumerRecord<String, String> r : taken) {
                equal(r.offset(), first + got);
                equal(r.value(), "value-" + r.offset());
                equal((int) r.deliveryCount().get(), delivery);
                c.acknowledge(r, type);
                got++;
            }
            commit(c);
        }
    }

    private void accept() throws Exception {
        long first = send(10);
        try (KafkaShareConsumer<String, String> c = member()) {
            work(c, first, 10, 1, AcknowledgeType.ACCEPT);
            equal(c.acquisitionLockTimeoutMs().get(), (int) LOCK.toMillis());
        }
        long after = send(1); // nothing that was accepted comes again
        try (KafkaShareConsumer<String, String> c = member()) {
            work(c, after, 1, 1, AcknowledgeType.ACCEPT);
        }
    }

    private void release() throws Exception {
        long first = send(3);
        try (KafkaShareConsumer<String, String> c = member()) {
            work(c, first, 3, 1, AcknowledgeType.RELEASE);
            work(c, first, 3, 2, AcknowledgeType.RELEASE);
            work(c, first, 3, 3, AcknowledgeType.ACCEPT);
        }
    }

    private void reject() throws Exception {
        long first = send(2);
        try (KafkaShareConsumer<String, String> c = member()) {
            work(c, first, 2, 1, AcknowledgeType.REJECT);
        }
        List<ConsumerRecord<String, String>> letters = letters();
        for (int i = 0; i < 2; i++) {
            ConsumerRecord<String, String> r = letters.get(i);
            String n = Long.toString(first + i);
            equal(r.key() + " " + r.value(), "key-" + n + " value-" + n);
            Map<String, String> headers = headers(r);
            equal(headers.get("__dlq.errors.topic"), topic);
            equal(headers.get("__dlq.errors.partition"), "0");
            equal(headers.get("__dlq.errors.offset"), n);
            equal(headers.get("__dlq.errors.group"), group);
            equal(headers.get("__dlq.errors.delivery.count"), "1");
        }
    }

    /** The record's own headers are in its dead letter too; Kafka leaves them out. */
    private void deadHeaders() {
        for (ConsumerRecord<String, String> r : letters()) {
            Map<String, String> headers = headers(r);
            equal(headers.get("own"), headers.get("__dlq.errors.offset"));
        }
    }

    private static Map<String, String> headers(ConsumerRecord<String, String> r) {
        Map<String, String> headers = new HashMap<>();
        for (Header h : r.headers()) {
            headers.put(h.key(), new String(h.value()));
        }
        return headers;
    }

    private List<ConsumerRecord<String, String>> letters() {
        List<ConsumerRecord<String, String>> letters = new ArrayList<>();
        try (KafkaConsumer<String, String> c = new KafkaConsumer<>(properties(), new StringDeserializer(), new StringDeserializer())) {
            TopicPartition place = new TopicPartition(dead, 0);
            c.assign(List.of(place));
            c.seekToBeginning(List.of(place));
            long end = System.nanoTime() + LIMIT.toNanos();
            while (letters.size() < 2 && System.nanoTime() < end) {
                c.poll(Duration.ofMillis(200)).forEach(letters::add);
            }
        }
        equal(letters.size(), 2);
        return letters;
    }

    /** A renewed lock holds beyond its first end: nobody else gets the record. */
    private void renew() throws Exception {
        long first = send(1);
        try (KafkaShareConsumer<String, String> c = member(); KafkaShareConsumer<String, String> other = member()) {
            List<ConsumerRecord<String, String>> taken = take(c);
            equal(taken.size(), 1);
            long end = System.nanoTime() + LOCK.toNanos() + LOCK.toNanos() / 2;
            while (System.nanoTime() < end) {
                c.acknowledge(taken.get(0), AcknowledgeType.RENEW);
                commit(c);
                equal(other.poll(Duration.ofSeconds(2)).count(), 0);
                taken.clear();
                c.poll(Duration.ofMillis(500)).forEach(taken::add); // a renewed record is handed out by the client again
                equal(taken.size(), 1);
                equal(taken.get(0).offset(), first);
            }
            c.acknowledge(taken.get(0), AcknowledgeType.ACCEPT);
            commit(c);
            equal(other.poll(Duration.ofSeconds(1)).count(), 0);
        }
    }

    /** Who says nothing loses the record when the lock ends. */
    private void expiry() throws Exception {
        long first = send(1);
        try (KafkaShareConsumer<String, String> silent = member(); KafkaShareConsumer<String, String> other = member()) {
            equal(take(silent).size(), 1);
            work(other, first, 1, 2, AcknowledgeType.ACCEPT);
        }
    }

    private void twoMembers() throws Exception {
        try (KafkaShareConsumer<String, String> a = member(); KafkaShareConsumer<String, String> b = member()) {
            a.poll(Duration.ofSeconds(1));
            b.poll(Duration.ofSeconds(1));
            long first = send(200);
            Map<Long, Integer> seen = new HashMap<>();
            long end = System.nanoTime() + LIMIT.toNanos();
            while (seen.size() < 200 && System.nanoTime() < end) {
                for (KafkaShareConsumer<String, String> c : List.of(a, b)) {
                    for (ConsumerRecord<String, String> r : c.poll(Duration.ofMillis(100))) {
                        seen.merge(r.offset(), 1, Integer::sum);
                        c.acknowledge(r);
                    }
                    commit(c);
                }
            }
            for (long o = first; o < first + 200; o++) {
                equal(seen.get(o), 1);
            }
        }
    }
}
