"""The facts of the small world: one table a subject, one row a thing. No two rows contradict each other (a test holds it)."""

from gptviz.training.world.numbers import Row

# what a person's gender decides, by the form's name in a wording
FORMS: dict[str, dict[str, str]] = {
    "he": {"m": "he", "f": "she"},
    "him": {"m": "him", "f": "her"},
    "his": {"m": "his", "f": "her"},
    "hers": {"m": "his", "f": "hers"},
    "himself": {"m": "himself", "f": "herself"},
    "boy": {"m": "boy", "f": "girl"},
    "man": {"m": "man", "f": "woman"},
    "son": {"m": "son", "f": "daughter"},
    "brother": {"m": "brother", "f": "sister"},
    "father": {"m": "father", "f": "mother"},
    "grandfather": {"m": "grandfather", "f": "grandmother"},
    "uncle": {"m": "uncle", "f": "aunt"},
    "king": {"m": "king", "f": "queen"},
    "prince": {"m": "prince", "f": "princess"},
    "husband": {"m": "husband", "f": "wife"},
    "nephew": {"m": "nephew", "f": "niece"},
    "lad": {"m": "lad", "f": "lass"},
    "sir": {"m": "sir", "f": "madam"},
}


def read_table(text: str) -> list[Row]:
    """Rows of a table that is written with its columns' names first and `|` between cells."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    columns = [cell.strip() for cell in lines[0].split("|")]
    rows = []
    for line in lines[1:]:
        cells = [cell.strip() for cell in line.split("|")]
        rows.append(dict(zip(columns, cells, strict=True)))
    return rows


MALE = [
    {"name": name, "gender": "m"}
    for name in (
        "Tom John Peter Paul Jack James Henry George William Charles David Daniel Michael Robert Edward Arthur Frank Fred Sam Ben Max Leo Oscar "
        "Simon Martin Mark Luke Adam Noah Jacob Joseph Thomas Andrew Philip Oliver Harry Hugo Felix Victor Walter Hans Karl Ivan Ali Omar Ahmed "
        "Ravi Carlos Pedro Juan Marco Luca Kenji Pierre Eric Kevin Brian Alan Tim Nick Dan Bill Joe Jim Bob"
    ).split()
]
FEMALE = [
    {"name": name, "gender": "f"}
    for name in (
        "Anna Mary Emma Lucy Alice Kate Jane Sarah Helen Clara Rose Grace Ella Mia Lily Sophie Julia Laura Nora Eva Maria Elizabeth Margaret "
        "Charlotte Emily Amy Beth Ruth Ida Martha Edith Dora Hannah Rachel Rebecca Susan Nancy Betty Sally Molly Polly Jenny Lisa Linda Nina "
        "Olga Zara Fatima Leila Priya Yuki Carmen Rosa Lena Ingrid Greta Heidi Ellen Diana Olivia Chloe Zoe Ivy Daisy Ann"
    ).split()
]
PEOPLE = MALE + FEMALE

# COUNTRIES. country: with its article if it has one ("in {country}", "{^country} is"). people:
# nationality and adjective ("She is {people}", "a {people} city": use {a people}). nationals:
# plural, with "the" ("the Germans", "the French"; {^nationals} begins a sentence). language: the
# one that most people there speak. city: another well-known city, not the capital. capital_river:
# flows through the capital, with "the". sight: stands in the capital, with its article. countrys:
# the possessive ("{^countrys} capital"). people, language, continent, city, capital_river and sight
# can be empty.
COUNTRIES = read_table("""
country | capital | people | nationals | language | continent | city | capital_river | sight | countrys
France | Paris | French | the French | French | Europe | Lyon | the Seine | the Eiffel Tower | France's
Germany | Berlin | German | the Germans | German | Europe | Munich | the Spree | the Brandenburg Gate | Germany's
Italy | Rome | Italian | the Italians | Italian | Europe | Milan | the Tiber | the Colosseum | Italy's
Spain | Madrid | Spanish | the Spanish | Spanish | Europe | Barcelona | | the Prado | Spain's
Portugal | Lisbon | Portuguese | the Portuguese | Portuguese | Europe | Porto | the Tagus | | Portugal's
England | London | English | the English | English | Europe | Manchester | the Thames | Big Ben | England's
the United Kingdom | London | British | the British | English | Europe | Birmingham | the Thames | Buckingham Palace | the United Kingdom's
the UK | London | British | the British | English | Europe | Liverpool | the Thames | Buckingham Palace | the UK's
Scotland | Edinburgh | Scottish | the Scots | English | Europe | Glasgow | | Edinburgh Castle | Scotland's
Wales | Cardiff | Welsh | the Welsh | English | Europe | Swansea | | | Wales's
Ireland | Dublin | Irish | the Irish | English | Europe | Cork | the Liffey | | Ireland's
the Netherlands | Amsterdam | Dutch | the Dutch | Dutch | Europe | Rotterdam | the Amstel | the Rijksmuseum | the Netherlands'
Belgium | Brussels | Belgian | the Belgians | Dutch | Europe | Antwerp | | the Atomium | Belgium's
Luxembourg | Luxembourg City | Luxembourgish | the Luxembourgers | Luxembourgish | Europe | | | | Luxembourg's
Switzerland | Bern | Swiss | the Swiss | German | Europe | Zurich | the Aare | | Switzerland's
Austria | Vienna | Austrian | the Austrians | German | Europe | Salzburg | the Danube | the Hofburg | Austria's
Denmark | Copenhagen | Danish | the Danes | Danish | Europe | Aarhus | | the Little Mermaid | Denmark's
Sweden | Stockholm | Swedish | the Swedes | Swedish | Europe | Gothenburg | | | Sweden's
Norway | Oslo | Norwegian | the Norwegians | Norwegian | Europe | Bergen | | | Norway's
Finland | Helsinki | Finnish | the Finns | Finnish | Europe | Tampere | | | Finland's
Iceland | Reykjavik | Icelandic | the Icelanders | Icelandic | Europe | | | | Iceland's
Poland | Warsaw | Polish | the Poles | Polish | Europe | Krakow | the Vistula | | Poland's
the Czech Republic | Prague | Czech | the Czechs | Czech | Europe | Brno | the Vltava | Charles Bridge | the Czech Republic's
Slovakia | Bratislava | Slovak | the Slovaks | Slovak | Europe | | the Danube | | Slovakia's
Hungary | Budapest | Hungarian | the Hungarians | Hungarian | Europe | | the Danube | Buda Castle | Hungary's
Romania | Bucharest | Romanian | the Romanians | Romanian | Europe | | | | Romania's
Bulgaria | Sofia | Bulgarian | the Bulgarians | Bulgarian | Europe | Plovdiv | | | Bulgaria's
Greece | Athens | Greek | the Greeks | Greek | Europe | Thessaloniki | | the Acropolis | Greece's
Albania | Tirana | Albanian | the Albanians | Albanian | Europe | | | | Albania's
Serbia | Belgrade | Serbian | the Serbs | Serbian | Europe | | the Danube | | Serbia's
Croatia | Zagreb | Croatian | the Croats | Croatian | Europe | Split | the Sava | | Croatia's
Slovenia | Ljubljana | Slovenian | the Slovenians | Slovenian | Europe | | | | Slovenia's
Bosnia and Herzegovina | Sarajevo | Bosnian | the Bosnians | Bosnian | Europe | Mostar | | | Bosnia and Herzegovina's
Montenegro | Podgorica | Montenegrin | the Montenegrins | | Europe | | | | Montenegro's
North Macedonia | Skopje | Macedonian | the Macedonians | Macedonian | Europe | | the Vardar | | North Macedonia's
Ukraine | Kyiv | Ukrainian | the Ukrainians | Ukrainian | Europe | Odesa | the Dnieper | | Ukraine's
Belarus | Minsk | Belarusian | the Belarusians | | Europe | | | | Belarus's
Moldova | Chisinau | Moldovan | the Moldovans | Romanian | Europe | | | | Moldova's
Russia | Moscow | Russian | the Russians | Russian | Europe | Saint Petersburg | the Moskva | the Kremlin | Russia's
Estonia | Tallinn | Estonian | the Estonians | Estonian | Europe | Tartu | | | Estonia's
Latvia | Riga | Latvian | the Latvians | Latvian | Europe | | | | Latvia's
Lithuania | Vilnius | Lithuanian | the Lithuanians | Lithuanian | Europe | Kaunas | | | Lithuania's
Malta | Valletta | Maltese | the Maltese | Maltese | Europe | | | | Malta's
Monaco | Monaco | | | French | Europe | | | | Monaco's
Cyprus | Nicosia | Cypriot | the Cypriots | Greek | | | | | Cyprus's
Turkey | Ankara | Turkish | the Turks | Turkish | | Istanbul | | | Turkey's
the United States | Washington | American | the Americans | English | North America | New York | the Potomac | the White House | the United States'
the USA | Washington | American | the Americans | English | North America | Chicago | the Potomac | the White House | the USA's
Canada | Ottawa | Canadian | the Canadians | English | North America | Toronto | | | Canada's
Mexico | Mexico City | Mexican | the Mexicans | Spanish | North America | | | | Mexico's
Cuba | Havana | Cuban | the Cubans | Spanish | North America | | | | Cuba's
Jamaica | Kingston | Jamaican | the Jamaicans | | North America | | | | Jamaica's
Brazil | Brasilia | Brazilian | the Brazilians | Portuguese | South America | Rio de Janeiro | | | Brazil's
Argentina | Buenos Aires | Argentinian | the Argentinians | Spanish | South America | | | | Argentina's
Chile | Santiago | Chilean | the Chileans | Spanish | South America | Valparaiso | | | Chile's
Peru | Lima | Peruvian | the Peruvians | Spanish | South America | Cusco | | | Peru's
Colombia | Bogota | Colombian | the Colombians | Spanish | South America | Medellin | | | Colombia's
Venezuela | Caracas | Venezuelan | the Venezuelans | Spanish | South America | | | | Venezuela's
Uruguay | Montevideo | Uruguayan | the Uruguayans | Spanish | South America | | | | Uruguay's
Ecuador | Quito | Ecuadorian | the Ecuadorians | Spanish | South America | | | | Ecuador's
China | Beijing | Chinese | the Chinese | Chinese | Asia | Shanghai | | the Forbidden City | China's
Japan | Tokyo | Japanese | the Japanese | Japanese | Asia | Osaka | | | Japan's
India | New Delhi | Indian | the Indians | Hindi | Asia | Mumbai | | | India's
Pakistan | Islamabad | Pakistani | the Pakistanis | | Asia | Karachi | | | Pakistan's
Bangladesh | Dhaka | Bangladeshi | the Bangladeshis | Bengali | Asia | | | | Bangladesh's
Nepal | Kathmandu | Nepalese | the Nepalese | Nepali | Asia | | | | Nepal's
Thailand | Bangkok | Thai | the Thais | Thai | Asia | Chiang Mai | | | Thailand's
Vietnam | Hanoi | Vietnamese | the Vietnamese | Vietnamese | Asia | | | | Vietnam's
the Philippines | Manila | Filipino | the Filipinos | Filipino | Asia | | | | the Philippines'
South Korea | Seoul | South Korean | the South Koreans | Korean | Asia | Busan | the Han | | South Korea's
North Korea | Pyongyang | North Korean | the North Koreans | Korean | Asia | | | | North Korea's
Mongolia | Ulaanbaatar | Mongolian | the Mongolians | Mongolian | Asia | | | | Mongolia's
Iran | Tehran | Iranian | the Iranians | Persian | Asia | Shiraz | | | Iran's
Iraq | Baghdad | Iraqi | the Iraqis | Arabic | Asia | Basra | the Tigris | | Iraq's
Syria | Damascus | Syrian | the Syrians | Arabic | Asia | Aleppo | | | Syria's
Lebanon | Beirut | Lebanese | the Lebanese | Arabic | Asia | | | | Lebanon's
Saudi Arabia | Riyadh | Saudi | the Saudis | Arabic | Asia | Mecca | | | Saudi Arabia's
Egypt | Cairo | Egyptian | the Egyptians | Arabic | Africa | Alexandria | the Nile | | Egypt's
Morocco | Rabat | Moroccan | the Moroccans | Arabic | Africa | Casablanca | | | Morocco's
Algeria | Algiers | Algerian | the Algerians | Arabic | Africa | Oran | | | Algeria's
Tunisia | Tunis | Tunisian | the Tunisians | Arabic | Africa | | | | Tunisia's
Libya | Tripoli | Libyan | the Libyans | Arabic | Africa | Benghazi | | | Libya's
Kenya | Nairobi | Kenyan | the Kenyans | Swahili | Africa | Mombasa | | | Kenya's
Ethiopia | Addis Ababa | Ethiopian | the Ethiopians | | Africa | | | | Ethiopia's
Ghana | Accra | Ghanaian | the Ghanaians | English | Africa | Kumasi | | | Ghana's
Nigeria | Abuja | Nigerian | the Nigerians | | Africa | Lagos | | | Nigeria's
Senegal | Dakar | Senegalese | the Senegalese | | Africa | | | | Senegal's
Australia | Canberra | Australian | the Australians | English | Oceania | Sydney | | | Australia's
New Zealand | Wellington | | the New Zealanders | English | Oceania | Auckland | | | New Zealand's
""")

# ANIMALS. animal: {a animal}; animals: plural. young: one young one ("{a young}"). sound: "the
# {animal} {sound}"; sound_past: "{sound_past}". sound_plain: "{animals} {sound_plain}", "can
# {sound_plain}". home: "lives in {a home}", "the {home}". habitat: "lives {habitat}", with its
# preposition. gives: what people get from it ("gives us {gives}"). eats: "{eats}" behind "eats" /
# "likes". legs: "has {legs} legs" (a number word or "no"). animal_kind: "is {a animal_kind}".
# grown: what a {young} becomes, the animal again, filled only where the young's name means this
# animal first of all (a calf: a cow). farm_animal, zoo_animal: the animal again, where it is one
# that lives on a farm (in a zoo): use it where the scene is on a farm. young, grown, sound, home,
# habitat, gives, eats, legs can be empty.
ANIMALS = read_table("""
animal | animals | young | sound | sound_plain | home | gives | eats | legs | animal_kind | habitat | grown | farm_animal | zoo_animal | sound_past
dog | dogs | puppy | barks | bark | kennel | | meat | four | pet | | dog | dog | | barked
cat | cats | kitten | meows | meow | | | mice | four | pet | | cat | cat | | meowed
cow | cows | calf | moos | moo | barn | milk | grass | four | farm animal | on a farm | cow | cow | | mooed
horse | horses | foal | neighs | neigh | stable | | hay | four | farm animal | on a farm | horse | horse | | neighed
donkey | donkeys | foal | brays | bray | stable | | hay | four | farm animal | on a farm | | donkey | | brayed
sheep | sheep | lamb | bleats | bleat | fold | wool | grass | four | farm animal | on a farm | sheep | sheep | | bleated
goat | goats | kid | bleats | bleat | | milk | grass | four | farm animal | on a farm | goat | goat | | bleated
pig | pigs | piglet | grunts | grunt | sty | bacon | corn | four | farm animal | on a farm | pig | pig | | grunted
hen | hens | chick | clucks | cluck | coop | eggs | corn | two | farm animal | on a farm | hen | hen | | clucked
rooster | roosters | | crows | crow | coop | | corn | two | farm animal | on a farm | | rooster | | crowed
turkey | turkeys | | gobbles | gobble | | meat | corn | two | farm animal | on a farm | | turkey | | gobbled
duck | ducks | duckling | quacks | quack | | | | two | bird | on the pond | duck | duck | | quacked
goose | geese | gosling | honks | honk | | feathers | grass | two | bird | on a farm | goose | goose | | honked
rabbit | rabbits | kit | | | burrow | | carrots | four | pet | in the meadow | rabbit | rabbit | |
mouse | mice | | squeaks | squeak | hole | | cheese | four | wild animal | in the field | | | | squeaked
lion | lions | cub | roars | roar | den | | meat | four | wild animal | in Africa | | | lion | roared
tiger | tigers | cub | roars | roar | | | meat | four | wild animal | in the jungle | | | tiger | roared
bear | bears | cub | growls | growl | den | | honey | four | wild animal | in the forest | | | bear | growled
wolf | wolves | pup | howls | howl | den | | meat | four | wild animal | in the forest | | | wolf | howled
fox | foxes | cub | | | den | | mice | four | wild animal | in the forest | | | |
deer | deer | fawn | | | | | leaves | four | wild animal | in the forest | deer | | |
elephant | elephants | calf | trumpets | trumpet | | | leaves | four | wild animal | | | | elephant | trumpeted
giraffe | giraffes | calf | | | | | leaves | four | wild animal | in Africa | | | giraffe |
zebra | zebras | foal | | | | | grass | four | wild animal | in Africa | | | zebra |
monkey | monkeys | | chatters | chatter | | | bananas | | wild animal | in the jungle | | | monkey | chattered
panda | pandas | cub | | | | | bamboo | four | wild animal | in China | | | panda |
kangaroo | kangaroos | joey | | | | | grass | | wild animal | in Australia | kangaroo | | kangaroo |
camel | camels | calf | | | | | | four | farm animal | in the desert | | | camel |
hedgehog | hedgehogs | | | | | | worms | four | wild animal | | | | |
squirrel | squirrels | | | | nest | | nuts | four | wild animal | in the forest | | | |
beaver | beavers | kit | | | lodge | | bark | four | wild animal | in the river | | | |
mole | moles | pup | | | burrow | | worms | four | wild animal | under the ground | | | |
crocodile | crocodiles | | | | | | meat | four | reptile | in the river | | | crocodile |
snake | snakes | | hisses | hiss | | | mice | no | reptile | | | | | hissed
frog | frogs | tadpole | croaks | croak | | | flies | four | wild animal | in the pond | frog | | | croaked
bird | birds | chick | chirps | chirp | nest | | seeds | two | animal | | | | | chirped
sparrow | sparrows | chick | chirps | chirp | nest | | seeds | two | bird | | | | | chirped
pigeon | pigeons | | coos | coo | nest | | seeds | two | bird | | | | | cooed
crow | crows | chick | caws | caw | nest | | | two | bird | | | | | cawed
owl | owls | owlet | hoots | hoot | | | mice | two | bird | in the forest | owl | | | hooted
eagle | eagles | eaglet | | | nest | | | two | bird | in the mountains | eagle | | |
swan | swans | cygnet | | | | | | two | bird | on the lake | swan | | |
stork | storks | chick | | | nest | | frogs | two | bird | | | | |
parrot | parrots | chick | squawks | squawk | | | seeds | two | bird | in the jungle | | | parrot | squawked
penguin | penguins | chick | | | | | fish | two | bird | on the ice | | | penguin |
bee | bees | | buzzes | buzz | hive | honey | nectar | six | insect | | | | | buzzed
ant | ants | | | | anthill | | | six | insect | | | | |
fly | flies | | buzzes | buzz | | | | six | insect | | | | | buzzed
butterfly | butterflies | caterpillar | | | | | nectar | six | insect | | butterfly | | |
beetle | beetles | | | | | | | six | insect | | | | |
spider | spiders | | | | web | | flies | eight | small animal | | | | |
snail | snails | | | | shell | | leaves | no | small animal | | | | |
worm | worms | | | | | | | no | small animal | in the ground | | | |
fish | fish | | | | | | | no | water animal | in the water | | | |
shark | sharks | pup | | | | | fish | no | fish | in the sea | | | |
whale | whales | calf | | | | | | no | sea animal | in the sea | | | |
dolphin | dolphins | calf | | | | | fish | no | sea animal | in the sea | | | |
seal | seals | pup | | | | | fish | | sea animal | in the sea | | | seal |
crab | crabs | | | | | | | ten | sea animal | in the sea | | | |
""")

# COLOURS. coloured: a subject that stands by itself, with its article if it needs one ("{^coloured}
# {is_are} {colour}", "What colour {is_are} {coloured}?", "as {colour} as {coloured}"). is_are: its
# verb.
COLOURS = read_table("""
coloured | is_are | colour
grass | is | green
snow | is | white
coal | is | black
blood | is | red
milk | is | white
the sky | is | blue
the sun | is | yellow
a lemon | is | yellow
a ripe banana | is | yellow
a ripe tomato | is | red
a strawberry | is | red
a ripe cherry | is | red
a raspberry | is | red
a blueberry | is | blue
a carrot | is | orange
a pumpkin | is | orange
a cucumber | is | green
a frog | is | green
a crow | is | black
a raven | is | black
a swan | is | white
a polar bear | is | white
a flamingo | is | pink
a canary | is | yellow
an elephant | is | grey
a mole | is | black
chocolate | is | brown
wood | is | brown
earth | is | brown
sugar | is | white
salt | is | white
flour | is | white
rice | is | white
cotton | is | white
a ruby | is | red
an emerald | is | green
a sapphire | is | blue
butter | is | yellow
mustard | is | yellow
an egg yolk | is | yellow
the sea | is | blue
leaves in summer | are | green
bananas | are | yellow
cherries | are | red
snowflakes | are | white
spinach | is | green
lettuce | is | green
soot | is | black
the night | is | black
a fire engine | is | red
a sunflower | is | yellow
a daisy | is | white
a poppy | is | red
a violet | is | violet
the leaves in spring | are | green
peas | are | green
lemons | are | yellow
tomatoes | are | red
strawberries | are | red
carrots | are | orange
clouds in summer | are | white
cornflowers | are | blue
""")

# OPPOSITES. kind: adjective, verb, noun, adverb or preposition. A word of the `word` column has one
# row and stands never in the `opposite` column; an opposite may be shared (tall/short, long/short),
# so "the opposite of {opposite} is {word}" is true, but not the only answer.
OPPOSITES = read_table("""
word | opposite | kind
hot | cold | adjective
warm | cool | adjective
big | small | adjective
large | small | adjective
tall | short | adjective
long | short | adjective
young | old | adjective
new | old | adjective
heavy | light | adjective
dark | light | adjective
fast | slow | adjective
high | low | adjective
wide | narrow | adjective
thick | thin | adjective
fat | thin | adjective
deep | shallow | adjective
soft | hard | adjective
easy | difficult | adjective
good | bad | adjective
happy | sad | adjective
rich | poor | adjective
strong | weak | adjective
wet | dry | adjective
clean | dirty | adjective
full | empty | adjective
loud | quiet | adjective
noisy | quiet | adjective
sweet | sour | adjective
sharp | blunt | adjective
rough | smooth | adjective
brave | cowardly | adjective
clever | stupid | adjective
beautiful | ugly | adjective
polite | rude | adjective
kind | cruel | adjective
lazy | hard-working | adjective
cheap | expensive | adjective
true | false | adjective
wrong | right | adjective
left | right | state
early | late | adjective
first | last | state
alive | dead | state
awake | asleep | state
safe | dangerous | adjective
straight | crooked | adjective
near | far | adjective
same | different | state
possible | impossible | state
open | close | verb
come | go | verb
push | pull | verb
buy | sell | verb
win | lose | verb
laugh | cry | verb
love | hate | deed
begin | end | verb
start | stop | verb
give | take | verb
remember | forget | verb
rise | fall | verb
arrive | leave | verb
ask | answer | verb
live | die | deed
day | night | noun
summer | winter | noun
friend | enemy | noun
peace | war | noun
heaven | hell | noun
north | south | noun
east | west | noun
morning | evening | noun
question | answer | noun
up | down | adverb
always | never | adverb
often | seldom | adverb
here | there | adverb
today | tomorrow | adverb
inside | outside | adverb
forwards | backwards | adverb
before | after | preposition
over | under | preposition
above | below | preposition
with | without | preposition
into | out of | preposition
black | white | adjective
fresh | stale | adjective
tight | loose | adjective
raw | cooked | state
guilty | innocent | state
ancient | modern | adjective
public | private | adjective
male | female | state
top | bottom | noun
front | back | noun
entrance | exit | noun
beginning | end | noun
success | failure | noun
victory | defeat | noun
boy | girl | noun
man | woman | noun
accept | refuse | verb
build | destroy | deed
borrow | lend | verb
find | lose | deed
raise | lower | deed
more | less | adverb
in | out | adverb
on | off | adverb
yes | no | adverb
""")

# JOBS. tool: {a tool}. workplace: one word, {a workplace} or "the {workplace}"; works_where: "works
# {works_where}", with preposition and article. task: "{a job} {task}"; task_plain: "{jobs}
# {task_plain}", "can {task_plain}", "It is my work to {task_plain}".
JOBS = read_table("""
job | jobs | tool | workplace | works_where | task | task_plain
baker | bakers | oven | bakery | in a bakery | bakes bread | bake bread
farmer | farmers | tractor | farm | on a farm | grows wheat | grow wheat
teacher | teachers | blackboard | school | in a school | teaches children | teach children
doctor | doctors | stethoscope | hospital | in a hospital | treats the sick | treat the sick
nurse | nurses | thermometer | hospital | in a hospital | cares for the sick | care for the sick
dentist | dentists | drill | surgery | in a surgery | mends teeth | mend teeth
chemist | chemists | scale | pharmacy | in a pharmacy | sells medicine | sell medicine
vet | vets | syringe | clinic | in a clinic | treats sick animals | treat sick animals
cook | cooks | pan | kitchen | in a kitchen | cooks meals | cook meals
waiter | waiters | tray | restaurant | in a restaurant | serves the guests | serve the guests
butcher | butchers | cleaver | shop | in a shop | sells meat | sell meat
carpenter | carpenters | saw | workshop | in a workshop | works with wood | work with wood
blacksmith | blacksmiths | hammer | forge | in a forge | shoes horses | shoe horses
shoemaker | shoemakers | awl | workshop | in a workshop | makes shoes | make shoes
tailor | tailors | needle | workshop | in a workshop | sews clothes | sew clothes
weaver | weavers | loom | mill | in a mill | weaves cloth | weave cloth
miller | millers | millstone | mill | in a mill | grinds corn into flour | grind corn into flour
mason | masons | trowel | building site | on a building site | builds walls | build walls
roofer | roofers | ladder | roof | on a roof | mends roofs | mend roofs
plumber | plumbers | wrench | house | in other people's houses | mends water pipes | mend water pipes
electrician | electricians | screwdriver | house | in other people's houses | mends electric wires | mend electric wires
mechanic | mechanics | wrench | garage | in a garage | repairs cars | repair cars
painter | painters | brush | studio | in a studio | paints pictures | paint pictures
photographer | photographers | camera | studio | in a studio | takes photographs | take photographs
sculptor | sculptors | chisel | studio | in a studio | carves statues | carve statues
gardener | gardeners | spade | garden | in a garden | looks after plants | look after plants
fisherman | fishermen | net | boat | on a boat | catches fish | catch fish
sailor | sailors | rope | ship | on a ship | sails the seas | sail the seas
pilot | pilots | headset | cockpit | in a cockpit | flies aeroplanes | fly aeroplanes
driver | drivers | steering wheel | bus | in a bus | drives a bus | drive a bus
postman | postmen | bag | post office | at a post office | delivers letters | deliver letters
policeman | policemen | whistle | police station | at a police station | catches thieves | catch thieves
firefighter | firefighters | hose | fire station | at a fire station | puts out fires | put out fires
soldier | soldiers | rifle | barracks | in the barracks | defends the country | defend the country
judge | judges | gavel | court | in a court | decides cases | decide cases
librarian | librarians | catalogue | library | in a library | lends books | lend books
writer | writers | pen | study | in a study | writes books | write books
journalist | journalists | notebook | newspaper | for a newspaper | writes the news | write the news
secretary | secretaries | typewriter | office | in an office | writes letters | write letters
scientist | scientists | microscope | laboratory | in a laboratory | makes experiments | make experiments
astronomer | astronomers | telescope | observatory | in an observatory | studies the stars | study the stars
hairdresser | hairdressers | comb | salon | in a salon | cuts hair | cut hair
musician | musicians | violin | concert hall | in a concert hall | plays music | play music
conductor | conductors | baton | concert hall | in a concert hall | leads an orchestra | lead an orchestra
actor | actors | costume | theatre | in a theatre | plays on the stage | play on the stage
miner | miners | pickaxe | mine | in a mine | digs for coal | dig for coal
shepherd | shepherds | crook | pasture | on a pasture | looks after sheep | look after sheep
beekeeper | beekeepers | veil | garden | in a garden | keeps bees | keep bees
woodcutter | woodcutters | axe | forest | in a forest | cuts down trees | cut down trees
watchmaker | watchmakers | magnifying glass | shop | in a shop | repairs watches | repair watches
cashier | cashiers | till | supermarket | in a supermarket | takes the money | take the money
cleaner | cleaners | broom | office | in an office | sweeps the floors | sweep the floors
""")

# FOODS. food: the bare word; a_food: with its article, as an object ("an apple", "tea"); foods: all
# of it, as a subject ("apples", "tea"); food_are: the verb behind {foods}. does: eat / drink;
# food_did: ate / drank; food_doing: eating / drinking. food_kind: "is {a food_kind}". taste can be
# empty.
FOODS = read_table("""
food | a_food | foods | food_are | does | food_did | food_doing | food_kind | taste
apple | an apple | apples | are | eat | ate | eating | fruit | sweet
pear | a pear | pears | are | eat | ate | eating | fruit | sweet
banana | a banana | bananas | are | eat | ate | eating | fruit | sweet
orange | an orange | oranges | are | eat | ate | eating | fruit | juicy
lemon | a lemon | lemons | are | eat | ate | eating | fruit | sour
cherry | a cherry | cherries | are | eat | ate | eating | fruit | sweet
plum | a plum | plums | are | eat | ate | eating | fruit | juicy
peach | a peach | peaches | are | eat | ate | eating | fruit | juicy
grape | a grape | grapes | are | eat | ate | eating | fruit | sweet
melon | a melon | melons | are | eat | ate | eating | fruit | juicy
strawberry | a strawberry | strawberries | are | eat | ate | eating | fruit | sweet
raspberry | a raspberry | raspberries | are | eat | ate | eating | fruit | sweet
pineapple | a pineapple | pineapples | are | eat | ate | eating | fruit | sweet
carrot | a carrot | carrots | are | eat | ate | eating | vegetable | sweet
potato | a potato | potatoes | are | eat | ate | eating | vegetable |
onion | an onion | onions | are | eat | ate | eating | vegetable | sharp
cabbage | cabbage | cabbage | is | eat | ate | eating | vegetable |
lettuce | lettuce | lettuce | is | eat | ate | eating | vegetable |
spinach | spinach | spinach | is | eat | ate | eating | vegetable |
radish | a radish | radishes | are | eat | ate | eating | vegetable | sharp
pumpkin | pumpkin | pumpkin | is | eat | ate | eating | vegetable |
bean | a bean | beans | are | eat | ate | eating | vegetable |
bread | bread | bread | is | eat | ate | eating | food |
butter | butter | butter | is | eat | ate | eating | food |
cheese | cheese | cheese | is | eat | ate | eating | food | salty
egg | an egg | eggs | are | eat | ate | eating | food |
rice | rice | rice | is | eat | ate | eating | grain |
soup | soup | soup | is | eat | ate | eating | meal | hot
porridge | porridge | porridge | is | eat | ate | eating | meal |
pizza | a pizza | pizzas | are | eat | ate | eating | meal |
salad | a salad | salads | are | eat | ate | eating | meal |
sandwich | a sandwich | sandwiches | are | eat | ate | eating | meal |
sausage | a sausage | sausages | are | eat | ate | eating | meat | salty
ham | ham | ham | is | eat | ate | eating | meat | salty
bacon | bacon | bacon | is | eat | ate | eating | meat | salty
beef | beef | beef | is | eat | ate | eating | meat |
salmon | salmon | salmon | is | eat | ate | eating | fish |
cake | cake | cake | is | eat | ate | eating | dessert | sweet
pudding | pudding | pudding | is | eat | ate | eating | dessert | sweet
ice cream | ice cream | ice cream | is | eat | ate | eating | dessert | cold
biscuit | a biscuit | biscuits | are | eat | ate | eating | snack | sweet
chocolate | chocolate | chocolate | is | eat | ate | eating | snack | sweet
honey | honey | honey | is | eat | ate | eating | food | sweet
jam | jam | jam | is | eat | ate | eating | food | sweet
nut | a nut | nuts | are | eat | ate | eating | snack |
tea | tea | tea | is | drink | drank | drinking | drink | hot
coffee | coffee | coffee | is | drink | drank | drinking | drink | bitter
milk | milk | milk | is | drink | drank | drinking | drink |
water | water | water | is | drink | drank | drinking | drink |
lemonade | lemonade | lemonade | is | drink | drank | drinking | drink | sweet
cocoa | cocoa | cocoa | is | drink | drank | drinking | drink | sweet
orange juice | orange juice | orange juice | is | drink | drank | drinking | drink | sweet
wine | wine | wine | is | drink | drank | drinking | drink |
beer | beer | beer | is | drink | drank | drinking | drink | bitter
""")

# objects that people have, lose, find and give; one word each, countable
OBJECTS = read_table("""
object | objects
ball | balls
book | books
key | keys
ring | rings
hat | hats
coat | coats
cap | caps
scarf | scarves
glove | gloves
shoe | shoes
boot | boots
belt | belts
button | buttons
purse | purses
bag | bags
basket | baskets
box | boxes
parcel | parcels
letter | letters
card | cards
stamp | stamps
ticket | tickets
map | maps
picture | pictures
photograph | photographs
pencil | pencils
pen | pens
notebook | notebooks
ruler | rulers
brush | brushes
comb | combs
mirror | mirrors
towel | towels
blanket | blankets
pillow | pillows
candle | candles
lamp | lamps
lantern | lanterns
torch | torches
clock | clocks
watch | watches
coin | coins
necklace | necklaces
flower | flowers
rose | roses
stone | stones
shell | shells
feather | feathers
stick | sticks
rope | ropes
knife | knives
fork | forks
spoon | spoons
plate | plates
cup | cups
glass | glasses
bottle | bottles
bowl | bowls
jug | jugs
pot | pots
umbrella | umbrellas
doll | dolls
kite | kites
drum | drums
flute | flutes
whistle | whistles
bell | bells
balloon | balloons
puzzle | puzzles
hammer | hammers
needle | needles
bucket | buckets
spade | spades
chair | chairs
bicycle | bicycles
suitcase | suitcases
camera | cameras
telephone | telephones
toy | toys
present | presents
""")

# places one goes to, as they stand behind "the" ("went to the {place}", "at the {place}", "left the
# {place}")
PLACES = read_table("""
place
garden
school
market
river
station
kitchen
library
church
park
beach
forest
village
town
castle
museum
theatre
cinema
hospital
shop
bakery
farm
stable
barn
mill
bridge
harbour
lake
mountain
island
meadow
field
orchard
playground
zoo
office
bank
hotel
restaurant
cafe
airport
factory
tower
palace
square
pool
well
house
post office
""")

DAYS = read_table("""
day       | day_after | day_before | second_day_after
Monday    | Tuesday   | Sunday     | Wednesday
Tuesday   | Wednesday | Monday     | Thursday
Wednesday | Thursday  | Tuesday    | Friday
Thursday  | Friday    | Wednesday  | Saturday
Friday    | Saturday  | Thursday   | Sunday
Saturday  | Sunday    | Friday     | Monday
Sunday    | Monday    | Saturday   | Tuesday
""")

MONTHS = read_table("""
month     | month_after | month_before | season | month_ordinal
January   | February    | December     | winter | first
February  | March       | January      | winter | second
March     | April       | February     | spring | third
April     | May         | March        | spring | fourth
May       | June        | April        | spring | fifth
June      | July        | May          | summer | sixth
July      | August      | June         | summer | seventh
August    | September   | July         | summer | eighth
September | October     | August       | autumn | ninth
October   | November    | September    | autumn | tenth
November  | December    | October      | autumn | eleventh
December  | January     | November     | winter | twelfth
""")

SEASONS = read_table("""
this_season | season_after | season_before | season_weather
spring      | summer       | winter        | warm
summer      | autumn       | spring        | hot
autumn      | winter       | summer        | windy
winter      | spring       | autumn        | cold
""")

# two to twelve, for stories; sums and sequences are made in `numbers`
NUMBERS = read_table("""
number | digits | number_after | number_before | ordinal
two    | 2      | three        | one           | second
three  | 3      | four         | two           | third
four   | 4      | five         | three         | fourth
five   | 5      | six          | four          | fifth
six    | 6      | seven        | five          | sixth
seven  | 7      | eight        | six           | seventh
eight  | 8      | nine         | seven         | eighth
nine   | 9      | ten          | eight         | ninth
ten    | 10     | eleven       | nine          | tenth
eleven | 11     | twelve       | ten           | eleventh
twelve | 12     | thirteen     | eleven        | twelfth
""")

# FAMILY. relation: "my {relation} is my {relative}", "the {relation} of ..." does not fit: write
# "{A}'s {relation}", "your {relation}"
FAMILY = read_table("""
relation | relative
mother's mother | grandmother
father's mother | grandmother
mother's father | grandfather
father's father | grandfather
mother's sister | aunt
father's sister | aunt
mother's brother | uncle
father's brother | uncle
uncle's son | cousin
uncle's daughter | cousin
aunt's son | cousin
aunt's daughter | cousin
brother's son | nephew
sister's son | nephew
brother's daughter | niece
sister's daughter | niece
daughter's son | grandson
son's son | grandson
son's daughter | granddaughter
daughter's daughter | granddaughter
uncle's wife | aunt
aunt's husband | uncle
grandmother's mother | great-grandmother
grandfather's father | great-grandfather
""")

# BODY. body_part: "with your {body_part}", plural where we have two; body_verb: "we {body_verb}
# with our {body_part}"; body_doing: its -ing form; body_plural: the part again, where it is a
# plural ("{body_plural} are for {body_doing}")
BODY = read_table("""
body_part | body_verb | body_doing | body_plural
eyes | see | seeing | eyes
ears | hear | hearing | ears
nose | smell | smelling |
tongue | taste | tasting |
teeth | chew | chewing | teeth
mouth | speak | speaking |
legs | walk | walking | legs
hands | hold things | holding things | hands
fingers | point | pointing | fingers
brain | think | thinking |
lungs | breathe | breathing | lungs
""")

# BODY_COUNTS. "A person has {body_number} {body_things}." / body_where: "on each {..}", "in ..":
# "has five fingers on each hand"
BODY_COUNTS = read_table("""
body_number | body_things | body_where
two | eyes | in the face
two | ears | on the head
ten | fingers | on both hands together
five | fingers | on each hand
five | toes | on each foot
ten | toes | on both feet together
two | thumbs | on both hands together
two | hands | at the ends of the arms
""")

# MATERIALS. made_thing: {a made_thing}; material: "is made of {material}"; came_from: where the
# material comes from, can be empty ("comes from {came_from}")
MATERIALS = read_table("""
made_thing | made_things | material | came_from
window pane | window panes | glass | sand
bottle | bottles | glass | sand
book | books | paper | wood
newspaper | newspapers | paper | wood
nail | nails | iron |
horseshoe | horseshoes | iron |
sword | swords | steel |
railway line | railway lines | steel |
candle | candles | wax |
plank | planks | wood | trees
wardrobe | wardrobes | wood | trees
log | logs | wood | trees
cardigan | cardigans | wool | sheep
saddle | saddles | leather | animal skins
tyre | tyres | rubber |
brick | bricks | clay | the ground
flowerpot | flowerpots | clay | the ground
loaf | loaves | flour | wheat
omelette | omelettes | eggs | hens
snowman | snowmen | snow | the sky
sandcastle | sandcastles | sand | the beach
wedding ring | wedding rings | gold | mines
cobweb | cobwebs | silk |
statue | statues | stone |
pyramid | pyramids | stone |
""")

# UNITS. time_unit: "{a time_unit} has {unit_number} {unit_parts}", "There are {unit_number}
# {unit_parts} in {a time_unit}"
UNITS = read_table("""
time_unit | unit_number | unit_parts
week | seven | days
year | twelve | months
hour | sixty | minutes
minute | sixty | seconds
day | twenty-four | hours
century | a hundred | years
decade | ten | years
fortnight | fourteen | days
leap year | three hundred and sixty-six | days
""")
# MEASURES. "{a measure} has {measure_number} {measure_parts}", "There are ... in {a measure}"
MEASURES = read_table("""
measure | measure_number | measure_parts
metre | a hundred | centimetres
kilometre | a thousand | metres
kilogram | a thousand | grams
dozen | twelve | pieces
foot | twelve | inches
yard | three | feet
dollar | a hundred | cents
pound | a hundred | pence
euro | a hundred | cents
centimetre | ten | millimetres
""")

# SHAPES. shape: {a shape}; sides: "has {sides} sides". straight sides only
SHAPES = read_table("""
shape | shapes | sides
triangle | triangles | three
square | squares | four
rectangle | rectangles | four
pentagon | pentagons | five
hexagon | hexagons | six
octagon | octagons | eight
""")

# COUNTED. "{a counted} has {counted_number} {counted_parts}"
COUNTED = read_table("""
counted | counted_number | counted_parts
car | four | wheels
bicycle | two | wheels
tricycle | three | wheels
wheelbarrow | one | wheel
table | four | legs
hand | five | fingers
foot | five | toes
spider | eight | legs
insect | six | legs
horse | four | legs
bird | two | wings
bird | two | legs
fly | six | legs
cube | six | faces
die | six | faces
violin | four | strings
guitar | six | strings
football team | eleven | players
chessboard | sixty-four | squares
clock face | twelve | numbers
clover leaf | three | parts
octopus | eight | arms
crab | ten | legs
""")

# VEHICLES. vehicle: {a vehicle}; "{a vehicle} {travel_verb} {travel_where}"; steered_by: "{a
# steered_by} steers it", can be empty
VEHICLES = read_table("""
vehicle | vehicles | travel_where | travel_verb | steered_by
train | trains | on rails | runs | driver
tram | trams | on rails | runs | driver
ship | ships | on the sea | sails | captain
boat | boats | on the water | sails |
submarine | submarines | under the water | moves | captain
car | cars | on the road | drives | driver
bus | buses | on the road | drives | driver
lorry | lorries | on the road | drives | driver
bicycle | bicycles | on the road | rolls | cyclist
aeroplane | aeroplanes | in the air | flies | pilot
helicopter | helicopters | in the air | flies | pilot
balloon | balloons | in the air | floats |
sledge | sledges | on the snow | slides |
rocket | rockets | into space | flies | astronaut
""")

# GROUPS. "{a kind_member} is {a kind_name}", "{kind_members} are {kind_names}"
GROUPS = read_table("""
kind_member | kind_members | kind_name | kind_names
rose | roses | flower | flowers
tulip | tulips | flower | flowers
daisy | daisies | flower | flowers
lily | lilies | flower | flowers
violet | violets | flower | flowers
oak | oaks | tree | trees
birch | birches | tree | trees
pine | pines | tree | trees
willow | willows | tree | trees
beech | beeches | tree | trees
hammer | hammers | tool | tools
saw | saws | tool | tools
screwdriver | screwdrivers | tool | tools
spade | spades | tool | tools
apple | apples | fruit | fruits
pear | pears | fruit | fruits
banana | bananas | fruit | fruits
cherry | cherries | fruit | fruits
carrot | carrots | vegetable | vegetables
potato | potatoes | vegetable | vegetables
cabbage | cabbages | vegetable | vegetables
onion | onions | vegetable | vegetables
sparrow | sparrows | bird | birds
eagle | eagles | bird | birds
swallow | swallows | bird | birds
robin | robins | bird | birds
ant | ants | insect | insects
bee | bees | insect | insects
beetle | beetles | insect | insects
butterfly | butterflies | insect | insects
salmon | salmon | fish | fish
trout | trout | fish | fish
herring | herrings | fish | fish
violin | violins | musical instrument | musical instruments
piano | pianos | musical instrument | musical instruments
trumpet | trumpets | musical instrument | musical instruments
flute | flutes | musical instrument | musical instruments
drum | drums | musical instrument | musical instruments
chair | chairs | piece of furniture | pieces of furniture
table | tables | piece of furniture | pieces of furniture
wardrobe | wardrobes | piece of furniture | pieces of furniture
ruby | rubies | precious stone | precious stones
diamond | diamonds | precious stone | precious stones
emerald | emeralds | precious stone | precious stones
snake | snakes | reptile | reptiles
lizard | lizards | reptile | reptiles
crocodile | crocodiles | reptile | reptiles
""")
# STUFFS. stuff: mass noun; stuff_kind: "is {a stuff_kind}"
STUFFS = read_table("""
stuff | stuff_kind
iron | metal
gold | metal
silver | metal
copper | metal
water | liquid
milk | liquid
oil | liquid
oxygen | gas
air | gas
""")

# WEATHER. weather_when: "when {weather_when}"; weather_need: what one takes or wears, with its
# article; weather_word: "{weather_word} weather"
WEATHER = read_table("""
weather_when | weather_word | weather_need
it rains | rainy | an umbrella
it is cold | cold | a warm coat
it snows | snowy | gloves and a warm coat
the sun shines | sunny | a sun hat
it is windy | windy | a scarf
""")

# WORN. worn: plural or singular with its article; worn_on: "one wears {worn} on {worn_on}"
WORN = read_table("""
worn | worn_on
a hat | the head
a cap | the head
gloves | the hands
shoes | the feet
socks | the feet
boots | the feet
a scarf | the neck
a necklace | the neck
a ring | the finger
glasses | the nose
a watch | the wrist
a crown | the head
a helmet | the head
slippers | the feet
""")

# USES. used_tool: "with {used_tool}", with its article; use_verb: "one can {use_verb} with it", "we
# need it to {use_verb}"
USES = read_table("""
used_tool | use_verb
a knife | cut bread
scissors | cut paper
a key | open a lock
a pen | write a letter
a broom | sweep the floor
a hammer | drive in a nail
a needle | sew on a button
a spade | dig a hole
an axe | chop wood
a spoon | eat soup
a match | light a candle
a thermometer | measure the temperature
a clock | tell the time
a telescope | look at the stars
a compass | find the north
soap | wash dirty hands
a towel | dry wet hands
a ladder | climb on to the roof
a camera | take a photograph
a kettle | boil water
an iron | press a shirt
a saw | cut wood
a ruler | draw a straight line
a toothbrush | brush teeth
a fishing rod | catch a fish
a tin-opener | open a tin
a calendar | look up the date
a dictionary | look up a word
a telephone | call a friend
an oven | bake a cake
a refrigerator | keep food cold
a watering can | water the flowers
a magnifying glass | make small things look bigger
""")

# GREETINGS. "{greeting}" is "hello" (or "good day") in {greeting_language}; thanks: "thank you"
GREETINGS = read_table("""
greeting | greeting_language | thanks
bonjour | French | merci
hola | Spanish | gracias
ciao | Italian | grazie
guten Tag | German | danke
ola | Portuguese | obrigado
hej | Swedish | tack
konnichiwa | Japanese | arigato
ni hao | Chinese | xie xie
salaam | Arabic | shukran
namaste | Hindi | dhanyavad
privet | Russian | spasibo
""")

# ALPHABET. letter, letter_after, letter_before in the alphabet; A has none before it, Z none after
# it
ALPHABET = [
    {
        "letter": letter,
        "letter_after": chr(ord(letter) + 1) if letter < "Z" else "",
        "letter_before": chr(ord(letter) - 1) if letter > "A" else "",
    }
    for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
]

# PLURALS. "one {one_thing}, two {more_things}"
PLURALS = read_table("""
one_thing | more_things
mouse | mice
child | children
man | men
woman | women
foot | feet
tooth | teeth
goose | geese
ox | oxen
sheep | sheep
leaf | leaves
knife | knives
wolf | wolves
wife | wives
baby | babies
city | cities
fly | flies
box | boxes
dog | dogs
cat | cats
book | books
house | houses
""")

# PASTS. "today I {verb_now}, yesterday I {verb_past}, I have often {verb_done}"; verb_third: "he
# {verb_third}"; verb_doing: "is {verb_doing}"
PASTS = read_table("""
verb_now | verb_third | verb_past | verb_done | verb_doing
go | goes | went | gone | going
eat | eats | ate | eaten | eating
drink | drinks | drank | drunk | drinking
sing | sings | sang | sung | singing
swim | swims | swam | swum | swimming
run | runs | ran | run | running
write | writes | wrote | written | writing
read | reads | read | read | reading
speak | speaks | spoke | spoken | speaking
sleep | sleeps | slept | slept | sleeping
fall | falls | fell | fallen | falling
fly | flies | flew | flown | flying
ride | rides | rode | ridden | riding
drive | drives | drove | driven | driving
win | wins | won | won | winning
draw | draws | drew | drawn | drawing
play | plays | played | played | playing
work | works | worked | worked | working
dance | dances | danced | danced | dancing
laugh | laughs | laughed | laughed | laughing
cook | cooks | cooked | cooked | cooking
wait | waits | waited | waited | waiting
""")

# DEGREES. {degree}, {degree_more} (than), the {degree_most}
DEGREES = read_table("""
degree | degree_more | degree_most
good | better | best
bad | worse | worst
big | bigger | biggest
small | smaller | smallest
tall | taller | tallest
old | older | oldest
young | younger | youngest
fast | faster | fastest
slow | slower | slowest
long | longer | longest
high | higher | highest
cold | colder | coldest
warm | warmer | warmest
strong | stronger | strongest
happy | happier | happiest
easy | easier | easiest
heavy | heavier | heaviest
""")

# PARTNERS. a man's word and a woman's: "the king's wife is the queen" does not fit all; use "a
# {he_word} and a {she_word}", "she is not a {he_word} but a {she_word}"
PARTNERS = read_table("""
he_word | she_word
king | queen
prince | princess
boy | girl
man | woman
father | mother
brother | sister
son | daughter
uncle | aunt
nephew | niece
husband | wife
grandfather | grandmother
grandson | granddaughter
bull | cow
rooster | hen
lion | lioness
duke | duchess
count | countess
emperor | empress
gentleman | lady
hero | heroine
god | goddess
waiter | waitress
actor | actress
host | hostess
""")

# WORLD. world_best: with "the", "... of the world" is in it; world_name: with its article
WORLD = read_table("""
world_best | world_name
the highest mountain in the world | Mount Everest
the largest ocean in the world | the Pacific
the largest country in the world | Russia
the largest animal in the world | the blue whale
the fastest animal on land | the cheetah
the tallest animal in the world | the giraffe
the largest continent in the world | Asia
the smallest continent in the world | Australia
the largest planet of our solar system | Jupiter
the planet nearest to the sun | Mercury
the longest river in South America | the Amazon
the longest river in Africa | the Nile
the largest bird in the world | the ostrich
the highest mountain in the Alps | Mont Blanc
the star nearest to the earth | the sun
the hardest natural stone | the diamond
the shortest month of the year | February
the first month of the year | January
the last month of the year | December
the first letter of the alphabet | A
the last letter of the alphabet | Z
the largest land animal | the elephant
the smallest country in the world | the Vatican
""")

# AUTHORS. maker {maker_did} work; maker_short: the last name
AUTHORS = read_table("""
work | maker_did | maker | maker_short
Hamlet | wrote | William Shakespeare | Shakespeare
Romeo and Juliet | wrote | William Shakespeare | Shakespeare
Macbeth | wrote | William Shakespeare | Shakespeare
Oliver Twist | wrote | Charles Dickens | Dickens
David Copperfield | wrote | Charles Dickens | Dickens
Pride and Prejudice | wrote | Jane Austen | Austen
Emma | wrote | Jane Austen | Austen
Jane Eyre | wrote | Charlotte Bronte | Bronte
Wuthering Heights | wrote | Emily Bronte | Bronte
Robinson Crusoe | wrote | Daniel Defoe | Defoe
Treasure Island | wrote | Robert Louis Stevenson | Stevenson
The Adventures of Tom Sawyer | wrote | Mark Twain | Twain
Alice in Wonderland | wrote | Lewis Carroll | Carroll
Frankenstein | wrote | Mary Shelley | Shelley
Dracula | wrote | Bram Stoker | Stoker
War and Peace | wrote | Leo Tolstoy | Tolstoy
Don Quixote | wrote | Miguel de Cervantes | Cervantes
Faust | wrote | Johann Wolfgang von Goethe | Goethe
The Three Musketeers | wrote | Alexandre Dumas | Dumas
The Time Machine | wrote | H. G. Wells | Wells
Moby Dick | wrote | Herman Melville | Melville
the Mona Lisa | painted | Leonardo da Vinci | Leonardo
The Starry Night | painted | Vincent van Gogh | van Gogh
The Magic Flute | composed | Wolfgang Amadeus Mozart | Mozart
The Four Seasons | composed | Antonio Vivaldi | Vivaldi
the Moonlight Sonata | composed | Ludwig van Beethoven | Beethoven
""")

# NEEDS. "{A} was {need_is}, so {A.he} {need_did}", "When I am {need_is}, I {need_do}", "wants to
# {need_do}"
NEEDS = read_table("""
need_is | need_do | need_did
hungry | eat something | ate something
thirsty | drink some water | drank some water
tired | go to bed | went to bed
sleepy | go to bed | went to bed
cold | put on a coat | put on a coat
ill | see a doctor | saw a doctor
sad | cry | cried
happy | sing and laugh | sang and laughed
afraid | run away | ran away
late | hurry | hurried
bored | read a book | read a book
dirty | have a bath | had a bath
lonely | visit a friend | visited a friend
curious | ask a question | asked a question
angry | shout | shouted
""")

# CAN. "{doers} can {can_do}", "{a doer} can {can_do}"
CAN = read_table("""
doer | doers | can_do
bird | birds | fly
fish | fish | swim
frog | frogs | jump
kangaroo | kangaroos | hop
monkey | monkeys | climb trees
horse | horses | gallop
snake | snakes | crawl
parrot | parrots | learn words
duck | ducks | swim
butterfly | butterflies | fly
mole | moles | dig
squirrel | squirrels | climb trees
bat | bats | fly in the dark
cat | cats | see well at night
dolphin | dolphins | swim
""")

# MAKERS. plural: "{makers} {make_verb} {make_what}"
MAKERS = read_table("""
makers | make_verb | make_what
bees | make | honey
hens | lay | eggs
cows | give | milk
spiders | spin | webs
birds | build | nests
beavers | build | dams
bakers | bake | bread
writers | write | books
painters | paint | pictures
shoemakers | make | shoes
tailors | make | clothes
carpenters | make | tables and chairs
clouds | bring | rain
composers | write | music
farmers | grow | corn
apple trees | bear | apples
""")

# VISITS. behind "the": "{A} went to the {visit_place} to {visit_to}"; {visit_did}: "and {visit_did}
# there"
VISITS = read_table("""
visit_place | visit_to | visit_did
library | borrow a book | borrowed a book
cinema | watch a film | watched a film
theatre | see a play | saw a play
museum | look at the pictures | looked at the pictures
station | catch a train | caught a train
airport | catch a plane | caught a plane
harbour | look at the ships | looked at the ships
bank | get some money | got some money
bakery | buy some bread | bought some bread
butcher's | buy some meat | bought some meat
post office | post a letter | posted a letter
hospital | visit a sick friend | visited a sick friend
swimming pool | swim | swam
market | buy vegetables | bought vegetables
bookshop | buy a book | bought a book
chemist's | buy medicine | bought medicine
restaurant | have dinner | had dinner
cafe | drink a cup of coffee | drank a cup of coffee
zoo | see the lions | saw the lions
park | go for a walk | went for a walk
beach | swim in the sea | swam in the sea
forest | pick mushrooms | picked mushrooms
bus stop | wait for the bus | waited for the bus
concert hall | listen to music | listened to music
stadium | watch a football match | watched a football match
well | fetch water | fetched water
playground | play | played
toyshop | buy a doll | bought a doll
""")

# ROOMS. "in the {room} people {room_do}"
ROOMS = read_table("""
room | room_do | room_doing
kitchen | cook | cooking
bedroom | sleep | sleeping
bathroom | wash | washing
dining room | eat | eating
classroom | learn | learning
""")

# PARTS. "{a part} is a part of {a whole}", "{a whole} has {parts}"
PARTS = read_table("""
part | parts | whole
branch | branches | tree
leaf | leaves | tree
petal | petals | flower
page | pages | book
finger | fingers | hand
toe | toes | foot
wheel | wheels | car
sail | sails | sailing ship
wing | wings | bird
feather | feathers | bird
fin | fins | fish
button | buttons | coat
string | strings | violin
key | keys | piano
step | steps | staircase
pedal | pedals | bicycle
room | rooms | house
""")

# HERDS. "a {herd} of {herd_of}"
HERDS = read_table("""
herd | herd_of
flock | sheep
herd | cows
pack | wolves
swarm | bees
school | fish
pride | lions
bunch | flowers
pair | shoes
pack | cards
flock | birds
bunch | grapes
litter | puppies
fleet | ships
team | players
""")

# FESTIVALS. "{festival} is in {festival_month}"
FESTIVALS = read_table("""
festival | festival_month
Christmas | December
New Year's Day | January
New Year's Eve | December
Valentine's Day | February
Halloween | October
April Fools' Day | April
Saint Patrick's Day | March
Saint Nicholas' Day | December
""")

# MEALS. "we have {meal} {meal_time}"
MEALS = read_table("""
meal | meal_time | meal_after
breakfast | in the morning | lunch
lunch | at noon | dinner
dinner | in the evening |
""")

# LANDMARKS. landmark with its article; "is in {landmark_land}"; landmark_city can be empty
LANDMARKS = read_table("""
landmark | landmark_land | landmark_city
the Great Wall | China |
the Taj Mahal | India | Agra
the Statue of Liberty | the United States | New York
the Grand Canyon | the United States |
the Golden Gate Bridge | the United States | San Francisco
Stonehenge | England |
Big Ben | England | London
Tower Bridge | England | London
Buckingham Palace | England | London
Loch Ness | Scotland |
the Leaning Tower | Italy | Pisa
the Colosseum | Italy | Rome
Mount Etna | Italy |
Machu Picchu | Peru |
the Sphinx | Egypt |
the Great Pyramid | Egypt |
the Acropolis | Greece | Athens
the Sydney Opera House | Australia | Sydney
the Eiffel Tower | France | Paris
the Louvre | France | Paris
Notre-Dame | France | Paris
the Palace of Versailles | France | Versailles
the Brandenburg Gate | Germany | Berlin
Neuschwanstein Castle | Germany |
the Kremlin | Russia | Moscow
Red Square | Russia | Moscow
Mount Fuji | Japan |
the Alhambra | Spain | Granada
the Sagrada Familia | Spain | Barcelona
the Little Mermaid | Denmark | Copenhagen
""")

# FAMOUS. famous: a name; "{famous} was {a famous_was}"; famous_people: nationality, can be empty
FAMOUS = read_table("""
famous | famous_was | famous_people
William Shakespeare | poet | English
Charles Dickens | writer | English
Jane Austen | writer | English
Mark Twain | writer | American
Albert Einstein | scientist | German
Isaac Newton | scientist | English
Marie Curie | scientist |
Charles Darwin | scientist | English
Galileo Galilei | astronomer | Italian
Wolfgang Amadeus Mozart | composer | Austrian
Ludwig van Beethoven | composer | German
Johann Sebastian Bach | composer | German
Giuseppe Verdi | composer | Italian
Frederic Chopin | composer | Polish
Vincent van Gogh | painter | Dutch
Rembrandt | painter | Dutch
Pablo Picasso | painter | Spanish
Leonardo da Vinci | painter | Italian
Claude Monet | painter | French
Christopher Columbus | sailor | Italian
Marco Polo | traveller | Italian
Napoleon | emperor | French
Julius Caesar | general | Roman
Cleopatra | queen |
Plato | philosopher | Greek
Socrates | philosopher | Greek
Homer | poet | Greek
Johann Wolfgang von Goethe | poet | German
Leo Tolstoy | writer | Russian
Victor Hugo | writer | French
Miguel de Cervantes | writer | Spanish
Hans Christian Andersen | writer | Danish
Neil Armstrong | astronaut | American
George Washington | president | American
Abraham Lincoln | president | American
Florence Nightingale | nurse | English
Queen Victoria | queen | British
""")

# COMPARED. "{^compare_a} is {compare_more} than {compare_b}": both with their article; compare_adj:
# the plain adjective
COMPARED = read_table("""
compare_a | compare_more | compare_b | compare_adj
an elephant | bigger | a mouse | big
a whale | bigger | a herring | big
a house | bigger | a box | big
an ant | smaller | a dog | small
a cherry | smaller | an apple | small
a horse | faster | a snail | fast
an aeroplane | faster | a bicycle | fast
a train | faster | a horse | fast
a snail | slower | a hare | slow
a tortoise | slower | a dog | slow
a stone | heavier | a feather | heavy
a cow | heavier | a hen | heavy
a piano | heavier | a chair | heavy
a feather | lighter | a brick | light
ice | colder | fire | cold
fire | hotter | ice | hot
a tower | higher | a house | high
a mountain | higher | a hill | high
a giraffe | taller | a sheep | tall
a tree | taller | a flower | tall
a year | longer | a week | long
an hour | longer | a minute | long
a day | shorter | a month | short
a second | shorter | a minute | short
a grandfather | older | his grandson | old
a baby | younger | its mother | young
gold | more expensive | iron | expensive
a stone | harder | butter | hard
a pillow | softer | a stone | soft
honey | sweeter | a lemon | sweet
a lion | stronger | a cat | strong
the sun | brighter | the moon | bright
the sea | deeper | a pond | deep
""")

# QUALITIES. "{^quality_thing} is {quality}", "as {quality} as {quality_thing}": with its article,
# singular
QUALITIES = read_table("""
quality_thing | quality
fire | hot
the sun | bright
ice | cold
honey | sweet
sugar | sweet
a lemon | sour
vinegar | sour
salt | salty
the night | dark
a stone | hard
iron | hard
a pillow | soft
silk | soft
a feather | light
lead | heavy
an elephant | big
a mouse | small
a snail | slow
an arrow | fast
a knife | sharp
a needle | sharp
water | wet
the desert | dry
a giraffe | tall
a tower | high
the sea | deep
a well | deep
a ball | round
the moon | round
thunder | loud
a whisper | quiet
glass | smooth
gold | precious
a lion | strong
""")

TABLES = {
    "countries": COUNTRIES,
    "animals": ANIMALS,
    "colours": COLOURS,
    "opposites": OPPOSITES,
    "jobs": JOBS,
    "foods": FOODS,
    "objects": OBJECTS,
    "places": PLACES,
    "days": DAYS,
    "months": MONTHS,
    "seasons": SEASONS,
    "numbers": NUMBERS,
    "family": FAMILY,
    "body": BODY,
    "body_counts": BODY_COUNTS,
    "materials": MATERIALS,
    "units": UNITS,
    "measures": MEASURES,
    "shapes": SHAPES,
    "counted": COUNTED,
    "vehicles": VEHICLES,
    "groups": GROUPS,
    "stuffs": STUFFS,
    "weather": WEATHER,
    "worn": WORN,
    "uses": USES,
    "greetings": GREETINGS,
    "alphabet": ALPHABET,
    "plurals": PLURALS,
    "pasts": PASTS,
    "degrees": DEGREES,
    "partners": PARTNERS,
    "world": WORLD,
    "authors": AUTHORS,
    "needs": NEEDS,
    "can": CAN,
    "makers": MAKERS,
    "visits": VISITS,
    "rooms": ROOMS,
    "parts": PARTS,
    "herds": HERDS,
    "festivals": FESTIVALS,
    "meals": MEALS,
    "landmarks": LANDMARKS,
    "famous": FAMOUS,
    "compared": COMPARED,
    "qualities": QUALITIES,
}
