package topics

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
)

// isoDuration is the form that Java's Duration prints: days, hours, minutes, seconds.
var isoDuration = regexp.MustCompile(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?$`)

// ShareReset reads a share.auto.offset.reset value: earliest, latest (back is 0
// then), or by_duration with how far back.
func ShareReset(value string) (kind string, back time.Duration, err error) {
	kind, rest, _ := strings.Cut(value, ":")
	switch kind {
	case "earliest", "latest":
		if rest == "" {
			return kind, 0, nil
		}
	case "by_duration":
		m := isoDuration.FindStringSubmatch(rest)
		if m == nil || rest == "P" || strings.HasSuffix(rest, "T") {
			break
		}
		for i, unit := range []float64{86400, 3600, 60, 1} {
			n, _ := strconv.ParseFloat("0"+m[i+1], 64)
			back += time.Duration(n * unit * float64(time.Second))
		}
		return kind, back, nil
	}
	return "", 0, model.Err(model.ClassInvalid, fmt.Sprintf("share.auto.offset.reset: %q is not earliest, latest or by_duration:PnDTnHnMn.nS", value))
}

func checkShareReset(value string) error {
	_, _, err := ShareReset(value)
	return err
}
