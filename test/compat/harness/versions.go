//go:build unix

package harness

// The pinned versions of everything that is not pinned by a file of its own
// (clients/python/requirements.txt, clients/node/package.json, clients/java/pom.xml).
const (
	FranzGoModule  = "github.com/twmb/franz-go"
	FranzGoVersion = "v1.22.3"
	KafkaGoModule  = "github.com/segmentio/kafka-go"
	KafkaGoVersion = "v0.4.51"

	// VegaDatasets is the npm package that carries the flight events.
	VegaDatasets     = "vega-datasets@3.2.1"
	FlightsMember    = "package/data/flights-3m.parquet"
	FlightsSHA256    = "dbeb920c90f59b6ccaff823dcc3d08f25a97fa1ce128d93f40be4e931f5900b0"
	FlightsTSVSHA256 = "3d09d2e8563e546f413d8c3791a657ba0264ce8a58993f4a4a4eb46117cc7650"
)
