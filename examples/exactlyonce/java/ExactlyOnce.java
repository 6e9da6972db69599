import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Reads orders, writes a charge for each, and commits the position, in one transaction. */
public class ExactlyOnce {
    public static void main(String[] args) {
        String broker = args.length > 0 ? args[0] : "127.0.0.1:9092";
        int wanted = args.length > 1 ? Integer.parseInt(args[1]) : 100;

        Properties reading = new Properties();
        reading.put("bootstrap.servers", broker);
        reading.put("group.id", "exactly-once-java");
        reading.put("auto.offset.reset", "earliest");
        reading.put("enable.auto.commit", "false");
        reading.put("isolation.level", "read_committed");

        Properties writing = new Properties();
        writing.put("bootstrap.servers", broker);
        writing.put("transactional.id", "charger-java-1");

        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
             KafkaProducer<String, String> producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            consumer.subscribe(List.of("orders"));
            for (int done = 0; done < wanted; ) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofSeconds(1));
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> position = new HashMap<>();
                for (ConsumerRecord<String, String> r : records) {
                    producer.send(new ProducerRecord<>("charges", r.key(), "charged " + r.value()));
                    position.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
                }
                // The position is committed with the charges, or neither is.
                producer.sendOffsetsToTransaction(position, consumer.groupMetadata());
                producer.commitTransaction();
                done += records.count();
                System.out.println(done + " orders charged");
            }
        }
    }
}
