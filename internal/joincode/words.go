package joincode

import "strings"

// words are what a code is made of: 256, each spoken unlike the others over a bad voice
// channel. They are those of the radiotelephone alphabet (ICAO Annex 10, but X-ray, which
// has a hyphen) and common nouns. A test holds the rules: 4 to 8 letters, no two begin with
// the same three letters, and no two differ by one letter.
var words = strings.Fields(`
	acorn album almond alpha amber anchor angel ankle apple apron arctic arrow artist aspen august autumn baker
	balcony bamboo banana basket beacon bedroom beetle bicycle blanket blossom bonfire bottle boulder bravo bridge
	bronze bucket buffalo butter cabin cactus camel candle carpet castle cedar cello charlie cherry chimney cinema
	circus clover cobalt coffee comet copper coral cotton cowboy cradle curtain cushion daisy dancer december
	delta diamond dinner doctor dolphin donkey dragon drummer eagle echo eclipse elbow elephant emerald engine
	envelope evening fabric falcon family farmer feather fence fiddle finger flamingo flower forest fossil
	fountain foxtrot friday furnace galaxy garden gazelle gecko giraffe glacier goblin golf granite guitar hammer
	hazel helmet heron hilltop hobby honey hotel hunter iceberg igloo impala india insect island ivory jacket
	jaguar january jasmine jelly jigsaw jockey juliet jungle jupiter kangaroo kettle keyboard kilo kingdom kitchen
	kiwi koala ladder lagoon lantern lemon letter library lilac lima linen lobster locket lumber machine magnet
	marble meadow melon mermaid meteor mike mirror mitten monday morning museum napkin nectar needle neptune
	nickel noodle notebook november nugget nutmeg ocean octopus office olive onion opera orange organ oscar osprey
	otter oyster paddle palace panther papa parrot pebble pelican pencil pepper piano picnic pigeon pilot pirate
	planet polar poppy potato powder prairie puffin pumpkin puzzle pyramid quarry quebec rabbit radish rainbow
	ranger raven reindeer ribbon river robin romeo salmon sandal school sierra silver spider stone sugar summer
	table tango thunder tiger timber tomato torch tulip turtle umbrella uniform valley velvet victor violin
	volcano wagon walnut whiskey window yankee zebra zipper zulu
`)
