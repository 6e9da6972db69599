// Everyday things with kafkajs.
const assert = require('assert')
const { CompressionTypes, ConfigResourceTypes, Partitioners } = require('kafkajs')

const codecs = { none: 'None', gzip: 'GZIP', snappy: 'Snappy', lz4: 'LZ4', zstd: 'ZSTD' }
const limit = 30000

class Smoke {
  constructor(kafka) {
    this.kafka = kafka
    this.admin = kafka.admin()
    this.producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  }

  async create(topic, numPartitions = 1) {
    assert(await this.admin.createTopics({ topics: [{ topic, numPartitions }], waitForLeaders: true }))
    const listed = async () => (await this.admin.listTopics()).includes(topic)
    await this.eventually(listed, true)
  }

  send(topic, messages, compression = CompressionTypes.None) {
    return this.producer.send({ topic, messages, acks: -1, compression })
  }

  // eventually waits, since a broker may answer before its metadata shows what it did.
  async eventually(get, want) {
    const end = Date.now() + 10000
    let got = await get()
    for (; got !== want && Date.now() < end; got = await get()) await new Promise((r) => setTimeout(r, 50))
    assert.strictEqual(got, want)
  }

  // read takes count messages of a topic, from the given offset when there is one.
  async read(topic, count, { groupId = `${topic}.${Date.now()}`, seek, ...options } = {}) {
    const consumer = this.kafka.consumer({ groupId, ...options })
    const taken = []
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    let done
    const all = new Promise((resolve, reject) => {
      done = resolve
      setTimeout(() => reject(new Error(`${taken.length} of ${count} came`)), limit).unref()
    })
    await consumer.run({
      autoCommitInterval: 100,
      eachMessage: async ({ message }) => {
        taken.push(message)
        if (taken.length === count) done()
      },
    })
    if (seek) consumer.seek({ topic, ...seek })
    try {
      await all
    } finally {
      await consumer.disconnect()
    }
    assert.strictEqual(taken.length, count)
    return taken
  }

  async adminTopics() {
    await this.create('js.admin', 2)
    await this.admin.createPartitions({ topicPartitions: [{ topic: 'js.admin', count: 5 }] })
    const described = () => this.admin.fetchTopicMetadata({ topics: ['js.admin'] })
    await this.eventually(async () => (await described()).topics[0].partitions.length, 5)
    const resource = { type: ConfigResourceTypes.TOPIC, name: 'js.admin' }
    const configEntries = [{ name: 'retention.ms', value: '3600000' }]
    await this.admin.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries }] })
    const retention = async () => {
      const { resources } = await this.admin.describeConfigs({ includeSynonyms: true, resources: [resource] })
      return resources[0].configEntries.find((e) => e.configName === 'retention.ms').configValue
    }
    await this.eventually(retention, '3600000')
    assert.strictEqual((await this.admin.describeCluster()).controller, 1)
    await this.admin.deleteTopics({ topics: ['js.admin'] })
    await this.eventually(async () => (await this.admin.listTopics()).includes('js.admin'), false)
  }

  async codec(name) {
    const topic = `js.${name}`
    await this.create(topic)
    const values = Array.from({ length: 200 }, (_, i) => `${name} ${i} `.repeat(20))
    await this.send(topic, values.map((value) => ({ key: 'key', value })), CompressionTypes[codecs[name]])
    assert.deepStrictEqual((await this.read(topic, 200)).map((m) => m.value.toString()), values)
  }

  async headers() {
    await this.create('js.headers')
    await this.send('js.headers', [{ key: 'k', value: null, headers: { a: ['1', '2'], empty: '' } }])
    const [message] = await this.read('js.headers', 1)
    assert.strictEqual(message.key.toString(), 'k')
    assert.strictEqual(message.value, null)
    assert.deepStrictEqual(message.headers.a.map(String), ['1', '2'])
    assert.strictEqual(message.headers.empty.toString(), '')
  }

  async seekByTime() {
    await this.create('js.time')
    const start = Date.now() - 10000
    const at = (i) => ({ value: String(i), timestamp: String(start + i * 1000) })
    await this.send('js.time', Array.from({ length: 10 }, (_, i) => at(i)))
    const [{ offset }] = await this.admin.fetchTopicOffsetsByTimestamp('js.time', start + 4500)
    assert.strictEqual(offset, '5')
    const [message] = await this.read('js.time', 5, { seek: { partition: 0, offset } })
    assert.strictEqual(message.value.toString(), '5')
  }

  async groupCommit() {
    await this.create('js.group', 3)
    await this.send('js.group', Array.from({ length: 30 }, (_, i) => ({ value: String(i), partition: i % 3 })))
    await this.read('js.group', 30, { groupId: 'js.group' })
    await this.send('js.group', [{ value: 'late' }])
    const [message] = await this.read('js.group', 1, { groupId: 'js.group' })
    assert.strictEqual(message.value.toString(), 'late')
    const [{ partitions }] = await this.admin.fetchOffsets({ groupId: 'js.group', topics: ['js.group'] })
    assert.strictEqual(partitions.reduce((sum, p) => sum + Number(p.offset), 0), 31)
    const { groups } = await this.admin.describeGroups(['js.group'])
    assert.strictEqual(groups[0].state, 'Empty')
    await this.admin.resetOffsets({ groupId: 'js.group', topic: 'js.group', earliest: true })
    assert.strictEqual((await this.read('js.group', 31, { groupId: 'js.group' })).length, 31)
    await this.admin.deleteGroups(['js.group'])
  }

  async deleteRecords() {
    await this.admin.deleteTopicRecords({ topic: 'js.time', partitions: [{ partition: 0, offset: '7' }] })
    const [{ low, high }] = await this.admin.fetchTopicOffsets('js.time')
    assert.deepStrictEqual([low, high], ['7', '10'])
  }

  async transaction() {
    await this.create('js.txn')
    const producer = this.kafka.producer({
      transactionalId: 'js.txn',
      maxInFlightRequests: 1,
      idempotent: true,
      createPartitioner: Partitioners.DefaultPartitioner,
    })
    await producer.connect()
    for (const kept of [true, false, true]) {
      const transaction = await producer.transaction()
      await transaction.send({ topic: 'js.txn', messages: [{ value: String(kept) }] })
      await (kept ? transaction.commit() : transaction.abort())
    }
    await producer.disconnect()
    const values = (await this.read('js.txn', 2)).map((m) => m.value.toString())
    assert.deepStrictEqual(values, ['true', 'true'])
  }
}

async function smoke(connect, brokers) {
  const s = new Smoke(connect(brokers))
  await s.admin.connect()
  await s.producer.connect()
  let failed = false
  const check = async (name, run) => {
    try {
      await run()
      console.log(`ok ${name}`)
    } catch (error) {
      failed = true
      console.error(error)
      console.log(`not ok ${name}: ${error.message.replace(/\s+/g, ' ')}`)
    }
  }
  await check('admin', () => s.adminTopics())
  for (const name of Object.keys(codecs)) await check(`codec ${name}`, () => s.codec(name))
  await check('headers', () => s.headers())
  await check('seek by time', () => s.seekByTime())
  await check('group commit', () => s.groupCommit())
  await check('delete records', () => s.deleteRecords())
  console.log('n/a static member: kafkajs has no group.instance.id')
  console.log('n/a cooperative rebalance: kafkajs rebalances eagerly only')
  await check('transaction', () => s.transaction())
  await s.producer.disconnect()
  await s.admin.disconnect()
  process.exit(failed ? 1 : 0)
}

module.exports = { smoke }
