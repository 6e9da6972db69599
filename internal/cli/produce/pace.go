package produce

import "time"

// pacer spaces records evenly: the n-th is due n/rate after the first. One that
// falls behind catches up.
type pacer struct {
	rate  float64 // a second; 0 never waits
	begin time.Time
	n     int64
}

func newPacer(rate float64) *pacer { return &pacer{rate: rate} }

// wait returns when the next record is due, or false when stop is closed first.
func (p *pacer) wait(stop <-chan struct{}) bool {
	var early time.Duration
	if p.rate > 0 {
		if p.n == 0 {
			p.begin = time.Now()
		}
		early = time.Until(p.begin.Add(time.Duration(float64(p.n) / p.rate * float64(time.Second))))
		p.n++
	}
	if early <= 0 {
		select {
		case <-stop:
			return false
		default:
			return true
		}
	}
	select {
	case <-stop:
		return false
	case <-time.After(early):
		return true
	}
}
