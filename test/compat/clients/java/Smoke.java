import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The smoke verb of ../README.md with Kafka's own clients: Smoke BROKERS. */
public final class Smoke {
    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final String brokers;
    private final Admin admin;
    private boolean failed;

    /** One check; what it throws is why it is not ok. */
    private interface Check {
        void run() throws Exception;
    }

    private Smoke(String brokers) {
        this.brokers = brokers;
        this.admin = Admin.create(Map.of("bootstrap.servers", brokers));
    }

    public static void main(String[] args) {
        Smoke s = new Smoke(args[0]);
        s.check("admin", s::adminTopics);
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            s.check("codec " + codec, () -> s.codec(codec));
        }
        s.check("headers", s::headers);
        s.check("seek by time", s::seekByTime);
        s.check("group commit", s::groupCommit);
        s.check("delete records", s::deleteRecords);
        s.check("static member", s::staticMember);
        s.check("cooperative rebalance", s::cooperative);
        s.check("transaction", s::transaction);
        s.check("read process write exactly once", s::readProcessWrite);
        s.check("consumer protocol", s::consumerProtocol);
        s.admin.close();
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

    private void create(String topic, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
    }

    private KafkaProducer<String, String> producer(String... config) {
        return new KafkaProducer<>(properties(config), new StringSerializer(), new StringSerializer());
    }

    private KafkaConsumer<String, String> consumer(String... config) {
        Properties properties = new Properties();
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        properties.putAll(properties(config));
        return new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
    }

    private Properties properties(String... config) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", brokers);
        for (int i = 0; i < config.length; i += 2) {
            properties.put(config[i], config[i + 1]);
        }
        return properties;
    }

    private static List<ConsumerRecord<String, String>> take(KafkaConsumer<String, String> consumer, int count) {
        List<ConsumerRecord<String, String>> taken = new ArrayList<>();
        long end = System.nanoTime() + LIMIT.toNanos();
        while (taken.size() < count && System.nanoTime() < end) {
            consumer.poll(Duration.ofMillis(200)).forEach(taken::add);
        }
        equal(taken.size(), count);
        return taken;
    }

    private List<ConsumerRecord<String, String>> read(String topic, int count, String... config) {
        try (KafkaConsumer<String, String> consumer = consumer(config)) {
            TopicPartition place = new TopicPartition(topic, 0);
            consumer.assign(List.of(place));
            consumer.seekToBeginning(List.of(place));
            return take(consumer, count);
        }
    }

    private static List<String> values(List<ConsumerRecord<String, String>> records) {
        return records.stream().map(ConsumerRecord::value).toList();
    }

    private void adminTopics() throws Exception {
        create("java.admin", 2);
        admin.createPartitions(Map.of("java.admin", NewPartitions.increaseTo(5))).all().get();
        equal(admin.describeTopics(List.of("java.admin")).allTopicNames().get().get("java.admin").partitions().size(), 5);
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "java.admin");
        AlterConfigOp set = new AlterConfigOp(new ConfigEntry("retention.ms", "3600000"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(topic, List.of(set))).all().get();
        ConfigEntry entry = admin.describeConfigs(List.of(topic)).all().get().get(topic).get("retention.ms");
        equal(entry.value(), "3600000");
        equal(entry.source(), ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG);
        equal(admin.describeCluster().nodes().get().size(), 1);
        equal(admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).size(), 1);
        admin.deleteTopics(List.of("java.admin")).all().get();
        equal(admin.listTopics().names().get().contains("java.admin"), false);
    }

    private void codec(String codec) throws Exception {
        String topic = "java." + codec;
        create(topic, 1);
        List<String> sent = new ArrayList<>();
        try (KafkaProducer<String, String> producer = producer("compression.type", codec, "linger.ms", "50")) {
            for (int i = 0; i < 200; i++) {
                sent.add((codec + " " + i + " ").repeat(20));
                producer.send(new ProducerRecord<>(topic, "key", sent.get(i)));
            }
        }
        equal(values(read(topic, 200)), sent);
    }

    private void headers() throws Exception {
        create("java.headers", 1);
        try (KafkaProducer<String, String> producer = producer()) {
            ProducerRecord<String, String> record = new ProducerRecord<>("java.headers", "k", null);
            record.headers().add("a", "1".getBytes(StandardCharsets.UTF_8)).add("a", "2".getBytes(StandardCharsets.UTF_8));
            record.headers().add("none", null);
            producer.send(record).get();
        }
        ConsumerRecord<String, String> got = read("java.headers", 1).get(0);
        equal(got.value() == null, true);
        List<String> seen = new ArrayList<>();
        got.headers().forEach(h -> seen.add(h.key() + "=" + (h.value() == null ? "null" : new String(h.value(), StandardCharsets.UTF_8))));
        equal(seen, List.of("a=1", "a=2", "none=null"));
    }

    private void seekByTime() throws Exception {
        create("java.time", 1);
        long start = System.currentTimeMillis() - 10_000;
        try (KafkaProducer<String, String> producer = producer()) {
            for (int i = 0; i < 10; i++) {
                producer.send(new ProducerRecord<>("java.time", 0, start + i * 1000L, null, String.valueOf(i)));
            }
        }
        TopicPartition place = new TopicPartition("java.time", 0);
        try (KafkaConsumer<String, String> consumer = consumer()) {
            OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(place, start + 4500)).get(place);
            equal(found.offset(), 5L);
            equal(consumer.offsetsForTimes(Map.of(place, start + 60_000)).get(place) == null, true);
            consumer.assign(List.of(place));
            consumer.seek(place, found.offset());
            equal(take(consumer, 5).get(0).value(), "5");
            equal(consumer.endOffsets(List.of(place)).get(place), 10L);
        }
        equal(admin.listOffsets(Map.of(place, OffsetSpec.maxTimestamp())).partitionResult(place).get().offset(), 9L);
    }

    private void groupCommit() throws Exception {
        create("java.group", 3);
        send("java.group", 30, 3);
        try (KafkaConsumer<String, String> consumer = consumer("group.id", "java.group")) {
            consumer.subscribe(List.of("java.group"));
            take(consumer, 30);
            consumer.commitSync();
        }
        send("java.group", 1, 1);
        try (KafkaConsumer<String, String> consumer = consumer("group.id", "java.group")) {
            consumer.subscribe(List.of("java.group"));
            take(consumer, 1);
            equal(admin.describeConsumerGroups(List.of("java.group")).all().get().get("java.group").members().size(), 1);
        }
        long sum = admin.listConsumerGroupOffsets("java.group").partitionsToOffsetAndMetadata().get().values().stream()
            .mapToLong(o -> o.offset()).sum();
        equal(sum, 30L);
    }

    private void send(String topic, int count, int partitions) {
        try (KafkaProducer<String, String> producer = producer()) {
            for (int i = 0; i < count; i++) {
                producer.send(new ProducerRecord<>(topic, i % partitions, null, String.valueOf(i)));
            }
        }
    }

    private void deleteRecords() throws Exception {
        TopicPartition place = new TopicPartition("java.group", 0);
        long low = admin.deleteRecords(Map.of(place, RecordsToDelete.beforeOffset(7))).lowWatermarks().get(place).get().lowWatermark();
        equal(low, 7L);
        equal(admin.listOffsets(Map.of(place, OffsetSpec.earliest())).partitionResult(place).get().offset(), 7L);
    }

    private void staticMember() throws Exception {
        create("java.static", 2);
        List<String> members = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            try (KafkaConsumer<String, String> consumer = consumer("group.id", "java.static", "group.instance.id", "one")) {
                consumer.subscribe(List.of("java.static"));
                await(() -> consumer.assignment().size() == 2, consumer);
                members.add(consumer.groupMetadata().memberId());
                equal(consumer.groupMetadata().generationId(), 1);
            }
        }
        equal(members.get(0).equals(members.get(1)), false);
    }

    private interface Condition {
        boolean holds();
    }

    @SafeVarargs
    private static void await(Condition condition, KafkaConsumer<String, String>... consumers) {
        long end = System.nanoTime() + LIMIT.toNanos();
        while (!condition.holds()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("assignments did not settle");
            }
            for (KafkaConsumer<String, String> consumer : consumers) {
                consumer.poll(Duration.ofMillis(100));
            }
        }
    }

    private void cooperative() throws Exception {
        create("java.coop", 4);
        String[] config = {"group.id", "java.coop", "partition.assignment.strategy", CooperativeStickyAssignor.class.getName()};
        Set<TopicPartition> revoked = new HashSet<>();
        try (KafkaConsumer<String, String> first = consumer(config); KafkaConsumer<String, String> second = consumer(config)) {
            first.subscribe(List.of("java.coop"), new org.apache.kafka.clients.consumer.ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> gone) {
                    revoked.addAll(gone);
                }

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> got) {
                }
            });
            await(() -> first.assignment().size() == 4, first);
            second.subscribe(List.of("java.coop"));
            await(() -> first.assignment().size() == 2 && second.assignment().size() == 2, first, second);
            equal(revoked.size(), 2);
        }
    }

    private void transaction() throws Exception {
        create("java.txn", 1);
        try (KafkaProducer<String, String> producer = producer("transactional.id", "java.txn")) {
            producer.initTransactions();
            for (boolean kept : new boolean[] {true, false, true}) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>("java.txn", String.valueOf(kept)));
                if (kept) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
        equal(values(read("java.txn", 2, "isolation.level", "read_committed")), Arrays.asList("true", "true"));
    }

    /** Half of the rounds abort after the offsets are sent; every input must come out once. */
    private void readProcessWrite() throws Exception {
        create("java.in", 1);
        create("java.out", 1);
        send("java.in", 50, 1);
        try (KafkaConsumer<String, String> in = consumer("group.id", "java.rpw", "isolation.level", "read_committed", "max.poll.records", "10");
                KafkaProducer<String, String> out = producer("transactional.id", "java.rpw." + UUID.randomUUID())) {
            out.initTransactions();
            in.subscribe(List.of("java.in"));
            TopicPartition place = new TopicPartition("java.in", 0);
            long done = 0;
            for (int round = 0; done < 50; round++) {
                var records = in.poll(Duration.ofSeconds(1));
                if (records.isEmpty()) {
                    continue;
                }
                long position = in.position(place);
                out.beginTransaction();
                records.forEach(r -> out.send(new ProducerRecord<>("java.out", r.value())));
                out.sendOffsetsToTransaction(
                    Map.of(place, new org.apache.kafka.clients.consumer.OffsetAndMetadata(position)), in.groupMetadata());
                if (round % 2 == 0) {
                    out.abortTransaction();
                    in.seek(place, done);
                } else {
                    out.commitTransaction();
                    done = position;
                }
            }
        }
        List<String> want = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            want.add(String.valueOf(i));
        }
        equal(values(read("java.out", 50, "isolation.level", "read_committed")), want);
    }

    private void consumerProtocol() throws Exception {
        create("java.848", 4);
        send("java.848", 40, 4);
        String[] config = {"group.id", "java.848", "group.protocol", "consumer"};
        try (KafkaConsumer<String, String> first = consumer(config); KafkaConsumer<String, String> second = consumer(config)) {
            first.subscribe(List.of("java.848"));
            take(first, 40);
            first.commitSync();
            second.subscribe(List.of("java.848"));
            await(() -> first.assignment().size() == 2 && second.assignment().size() == 2, first, second);
        }
    }
}
