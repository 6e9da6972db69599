package kafka

import "slices"

// metadataVersion is Kafka's metadata.version of the 4.4 line. Clients and tools
// take it as the age of the broker.
const metadataVersion = 33

// feature is one finalized feature (KIP-584): supported levels and the one in use.
// Clients turn protocols on by it, so a level is listed only when it works.
type feature struct {
	name           string
	min, max, used int16
}

// features lists what every part has earned.
func (s *Server) features() []feature {
	return slices.Concat(
		[]feature{{"metadata.version", 7, metadataVersion, metadataVersion}},
		s.groupFeatures(),
		s.txnFeatures(),
		s.shareFeatures(),
	)
}
