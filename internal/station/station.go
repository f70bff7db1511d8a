// Package station names the agents of a swarm after railway stations in and around Tokyo. The names
// of a run depend on its id alone, so every process that computes them gets the same.
package station

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"swarm"
)

// Name returns the name of a run's agent with this index, from 0. All names of a run differ.
func Name(run swarm.RunID, index int) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(run))
	name := stations[(int(h.Sum32()%uint32(len(stations)))+index)%len(stations)]
	if round := index / len(stations); round > 0 {
		name += "-" + strconv.Itoa(round+1)
	}
	return name
}

// Is says whether a run could name an agent so.
func Is(name string) bool {
	i := strings.LastIndexByte(name, '-')
	if _, err := strconv.ParseUint(name[i+1:], 10, 64); i > 0 && err == nil {
		name = name[:i]
	}
	return slices.Contains(stations, name)
}

var stations = []string{
	"tokyo", "yurakucho", "shimbashi", "hamamatsucho", "tamachi", "shinagawa", "osaki", "gotanda", "meguro", "ebisu",
	"shibuya", "harajuku", "yoyogi", "shinjuku", "shin-okubo", "takadanobaba", "mejiro", "ikebukuro", "otsuka", "sugamo",
	"komagome", "tabata", "nippori", "uguisudani", "ueno", "okachimachi", "akihabara", "kanda", "ochanomizu", "suidobashi",
	"iidabashi", "ichigaya", "yotsuya", "shinanomachi", "sendagaya", "okubo", "nakano", "koenji", "asagaya", "ogikubo",
	"nishi-ogikubo", "kichijoji", "mitaka", "musashi-sakai", "koganei", "kokubunji", "nishi-kokubunji", "kunitachi", "tachikawa", "hino",
	"toyoda", "hachioji", "nishi-hachioji", "takao", "asakusabashi", "ryogoku", "kinshicho", "kameido", "hirai", "koiwa",
	"ichikawa", "moto-yawata", "funabashi", "tsudanuma", "inage", "chiba", "kamata", "kawasaki", "tsurumi", "yokohama",
	"sakuragicho", "kannai", "ishikawacho", "yamate", "negishi", "isogo", "ofuna", "kamakura", "zushi", "fujisawa",
	"chigasaki", "hiratsuka", "oiso", "ninomiya", "kozu", "odawara", "akabane", "urawa", "omiya", "oji",
	"higashi-jujo", "jujo", "itabashi", "ukimafunado", "toda", "warabi", "kawaguchi", "ayase", "kita-senju", "matsudo",
}
