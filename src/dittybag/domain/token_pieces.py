"""What the vocabularies share. Written by `python -m tests.tokens.vocabularies`."""

from __future__ import annotations

from typing import Final

#: Pieces of words that each vocabulary has as one token, with and without a space before it.
PIECES: Final = """
AA AB AC ACT ACTION AD ADD AF AG AI AL ALL AM AN AND ANY AP API AR ARE ARM AS ASS ASSERT AT AU AUT AUTH
AV Ab About Abs Abstract Ac Acc Access Account Act Action Activ Active Activity Ad Add Address Admin Adv
Af Aff After Ag Agent Ah Air Al Alex Ali All Allow Alpha Alt Am An Anal Analysis And Android Ang Anim Ann
Ant Any Ap Api App Append Application Apply Appro Apr Ar Arc Arch Are Area Arg Args Argument Arm Array
Art As Ass Assembly Async At Att Attribute Aud Audio Aug Aut Auth Author Auto Autom Av Az Azure BA BB BC
BE BL BM BO BR BS BT BU BY Back Background Bad Bag Bal Band Bank Bar Bas Base Based Basic Battle Bay Be
Because Before Begin Bel Ben Ber Best Bet Bi Big Bill Bin Bit Bl Black Blo Block Blue Bo Board Body Bon
Book Boolean Boot Bot Box Br Break Bro Broad Bu Buff Buffer Build Builder Built Bus But Button By Byte CA
CAN CB CC CD CE CF CH CHECK CL CM CO COL COM COMP CON CONFIG CP CPU CR CS CSS CT CV Cache Cal Call Cam
Camera Camp Can Cap Capt Car Card Cart Case Cast Cat Category Cell Cent Center Cert Ch Chain Change
Changes Channel Char Character Chart Chat Che Check Child Children Choice Christ City Cl Class Clean
Clear Click Client Close Cloud Co Code Col Coll Collect Collection Collections Color Column Com Comb Come
Comm Command Comment Commit Common Comp Company Compar Complete Complex Component Con Condition Conf
Config Configuration Connect Connection Cons Console Const Constant Construct Cont Contact Container
Content Context Contin Contract Control Controller Convert Cop Copy Copyright Cor Core Cost Could Count
Country Cr Create Created Cross Culture Cur Current Custom Customer Cut DA DATA DB DC DE DEBUG DEF
DEFAULT DI DIS DL DM DO DOM DR DS DT Da Dam Dan Dark Dat Data Database Date David Day De Dead Debug Dec
Decl Deep Def Default Definition Del Delete Delta Dem Den Dep Der Des Desc Description Design Dest Det
Details Dev Device Di Dialog Dictionary Did Die Diff Dig Dim Dir Direct Dis Display Dist Div Do Doc
Document Does Dom Don Double Down Download Dr Drag Draw Driver Drop Du EC ED EDIT EL EM EN END EP ER ERR
ERROR ES ET EV EVENT EX Each Ed Edge Edit Editor Effect El Element Em Email Emb Emp En Enable Enc End Eng
Engine English Ent Enter Entity Entry Enum Env Environment Eq Equ Er Error Es Est Europe Ev Eval Even
Event Events Every Ex Example Exception Exp Expect Express Expression Ext Extension Extra FA FALSE FC FE
FI FILE FIX FL FM FO FOR FR FREE FROM FT Fac Face Factory Fail Fall False Family Fast Fat Fe Feature
Features Fi Field Fig Figure Fil File Files Fill Filter Fin Final Find Fire First Fix Fl Flag Float Flow
Focus Follow Font Foot For Force Fore Form Format Found Foundation Fr Frame Free Friend From Front Full
Fun Function Future GA GB GC GD GEN GET GF GL GM GO GP GPIO GPU GR GT Ga Game Gate Ge Gen Gener General
Generate Generation Generic Get Gl Global Go God Gold Good Google Gr Graph Gre Great Green Grid Group Gu
Guard HA HD HE HO HP HR HT HTML HTTP Ha Hal Hand Handle Har Hard Has Hash Have He Head Header Health Hel
Hello Help Hen Her Here Hey Hi High His Hist History Hit Hol Hom Home Hook Hor Host Hot How However Http
Hub Hy IC ID IE IF II III IL IM IMP IN INCLUDING INFO INT IO IP IR IS ISO IT IV IX Icon Id Ident Identity
If Ign Il Ill Im Image Images Imp Implement Import In Ind Index Inf Info Information Init Initial
Initialize Input Ins Insert Inst Install Instance Int Integer Intent Inter Internal Into Introduction Inv
Invalid Io Ir Is Iss It Item Iter JO JS JSON Jack Jan Java Je Jo Job John Join Journal Json Just KEY Ke
Keep Key Kind King Kit LA LE LED LI LICENSE LIMIT LL LO LOG LP La Label Land Lang Language Large Last Lat
Layout Le Lead Leave Left Leg Len Length Les Less Let Level Li Lib Library License Life Light Like Lim
Lin Line Link Linked List Listen Live Lo Load Loc Local Location Lock Log Logger Login London Long Look
Los Lou Love Low Lower Lu Luc MA MAC MAX MB MC MD ME MI MIN MIT ML MO MOD MODULE MON MP MR MS MT MY Ma
Mac Machine Mad Mag Mail Main Make Mal Man Management Manager Many Map Mar Mark Mart Mask Mass Master Mat
Match Material Math Matrix Max May Maybe Mc Me Med Media Mem Member Members Memory Men Menu Mer Message
Met Meta Method Mic Microsoft Mil Mill Min Mir Miss Mix Mo Mobile Mock Mod Mode Model Module Mon Monitor
Mont Month More Most Mount Mouse Move Mr Ms Mu Mult Multi Mus Music Must Mut My NA NC NE NET NEW NL NO
NOT NS NT NULL NV NY Na Name Names National Native Nav Ne Need Neg Net Network Never New News Next No
Node Non None Norm Normal Not Note Nothing Now Null Num Number OB OF OFF OK ON ONE OP OPT OR OS OUT Ob
Object Occ Oct Of Off Oh Ok Okay Old Om On Once One Only Op Open Oper Operation Operations Opt Option
Optional Options Or Ord Order Organ Origin Original Os Other Our Out Output Over Own PA PAGE PAR PART PC
PCI PD PDF PE PER PG PH PHP PI PK PL PM PO PORT PP PR PRO PS PT Pack Package Pad Page Pal Pan Panel Par
Param Parameter Parameters Parent Parse Part Partial Pass Pat Path Pattern Paul Pay Payment Pe Pen Per
Period Perm Pers Person Pet Ph Phase Phil Phone Photo Phys Pi Pin Pl Place Plan Platform Play Player
Please Plus Po Pod Point Pointer Points Pol Policy Poly Pool Pop Port Pos Position Post Power Pr Pre Pred
Pres Present Press Price Primary Print Priv Private Pro Process Produ Product Profile Program Progress
Project Prom Promise Prop Properties Property Protocol Prov Pub Public Put Py Qt Qu Qual Quant Que Query
Quest Question Quick RC RE READ REG RES RET RF RO RT Rad Radio Random Range Rank Rate Raw Ray Re Read
Real Rec Record Records Rect Red Ref Reference Reg Region Register Rel Release Rem Render Rep Report
Request Required Res Reset Resource Resources Response Rest Result Results Ret Return Returns Rev Review
Rich Right Ro Rob Role Roll Rom Room Root Rot Round Route Row Rule Rules Run Running Runtime SA SB SC SD
SE SEC SER SET SF SH SHA SI SIG SK SL SM SN SO SP SPI SQL SR SS SSL ST STAT STR SU SUB SV SW SY Sa Safe
Saint Sal Sam Same Sample San Save Sc Sch Schedule Schema Score Screen Script Se Search Sec Second Secret
Section Security See Seg Select Selection Self Sem Send Sep Ser Serial Series Serv Server Service
Services Session Set Sets Setting Settings Setup Sh Shadow Share She Shell Ship Shop Short Should Show Si
Side Sig Sign Sil Sim Simple Since Sing Single Sir Site Size Sk Skip Sl Sm Small Sn So Soft Some
Something Sorry Sort Sound Source South Sp Space Spe Spec Special Speed Spring Sql St Stack Stage Stand
Standard Star Start Stat State Statement States Station Statistics Status Ste Step Stop Storage Store Str
Stream String Struct Student Style Su Sub Subject Success Such Suite Sum Sun Sup Super Support Sur Sure
Sw Switch Sy Symbol System TABLE TCP TD TE TEST TEXT TF TH THE TIME TL TO TR TRUE TV TX TYPE Tab Table
Tag Take Target Task Tax Te Team Tele Tell Temp Template Ten Tensor Term Test Tests Tex Text Th Thank
Thanks That The Theme Then There These They This Thread Three Throw Tim Time Times Tip Title To Tok Token
Tom Too Tool Tools Top Tor Total Touch Tr Tra Trace Track Trans Transaction Transfer Transport Tree Tri
True Try Tur Turn Tw Two Ty Typ Type Types UE UI UINT UK UN UP URI URL US USA USB USE UTC UV Un Und Under
Union Unit Univers Up Update Updated Upper Us Use Used User Users Using Util VA VAL VAR VER VI VM VT Val
Valid Validate Value Var Vari Vec Vector Vel Ver Verify Vers Version Vert Very Vi Video View Virtual Vis
Visual Vo Vol Volume WA WAR WE WH WIN WITH WM WR Wait Walk Wall War Was Watch Water We Web Week Weight
Well West Wh What When Where Which While White Who Why Widget Will Win Window Windows With Without Word
Work World Would Write Writer XML XX Yeah Year Yes You Your Zero Zone ab abc abilities ability able abol
abort about abs absolute abstract ac acc accept access account accur ace act action actions activ
activate active activity actor acts actual ad adapter add added adding addr address ade adj adjust admin
ads adv af aff after ag again age aged agent ages aging ago ah ai aid aim ain air aj ak akt al album ale
alert alg algorithm ali alias align aligned all alla alle aller alloc allow allowed alone alpha als also
alt alter altern although always am amb amen amount an anal analysis anc anch anchor and android ang ange
angel anger angle angles angular anim animation ann ano ans answer ant ante antes anth anti any ao ap api
app appe append apple application apply appoint appro approx apps apt aqu ar arc arch archive are area
aren arg args argument arguments argv arm armed arms around arr array arrow art arte article arts as asc
ash ask ass assembly assert asset assets assign ast async at ate ath atom atomic att attach attachment
attr attribute attributes attrs au aud audio auf aug aur aus aut auth author authorized auto autom autor
aux av available ave aver aw await aware away awk aws ax axis ay az ba back backend background backs
backup bad bag bal balance ball ban band bands bank bar bars bas base based basic bat batch bc be bean
beans bear beat because bed before begin being bek bel bell ben bench ber bere bes best bet beta between
bg bi bias bid big bil bin binary bind binding bio bird bis bit bitmap bits bl black blank ble blo blob
block blocks blog blue bo board boards boat body bol bold bon bone book books bool boolean boost boot bor
border born bot both bottom bound bounds bour bow box boxes boy boys br bra brace branch brand bras bre
bread break brew bridge brief brit bro browser bt btn bu bucket bud buf buff buffer bug build builder
building built bul bullet bundle bur burn bus business but button buttons by byte bytes ca cache cached
cal calc calendar call callback called calls cam camera camp can cancel canvas cap capacity caps capture
car card cards care cart cas case cases cast cat catalog catch categories category cb cc cd ce cel cell
cent center cer cert ces cf cfg ch cha chain chair change changed changes changing channel channels chant
chap char character charg charge chart chat che check checked chem cher chez chi child children chip cho
choice chr chron chunk ci cin cir circ circle cit city cl claim class classes cle clean cleanup clear
click client clip clock clone close closed closure cloud cls club cluster cm cmd cnt co cock cod code
codes coin col coll collapse collect collection colon color colors column columns com comb come comes
comfort coming comm command commands comment comments commerce commit common comp company compare compat
compatible compet compile compiler complete complex component components compress compute con conc cond
condition conditions conduct conf config configuration configure confirm conn connect connected
connection cons console const constant constants constraint construct construction constructor cont
contact container contains content contents context contin continue contr contract control controller
controls conv convert cook cookie coord cop cope copy copyright cor cord core correct cos cost cou could
count counter country course court cout cov cover covered cow cp cpu cr craft cre create created cred cri
crit cro cross crypto cs css ctrl ctx cu cul cup cur curr currency current cursor custom customer cut cv
cx cy cycle da dag dam dan dar dark das dash dat data database dataset date dated dates datetime dating
day days db dc de dead debug dec deck decl decode decor deep def default defaults define defined
definition deg degree del delay delegate delete deleted delta dem demo den density dep depend dependent
depth der derive des desc description descriptor design dess dest destination destroy det detail details
detect dev develop device devices df di dialog dict did die diff dig dim dir dire direct direction
directory dirty dis disable disabled disk disp dispatch display dist distance dit div django dl do doc
document does dog dom domain don done door doors dot double down download dp dr draft drag draw drive
driver dro drop ds dst dt dtype du due dummy dump dup duration dv dw dx dy dyn dynamic dz each ear ears
east eb ec echo ed edge edges edit editor educ een eff effect effective eg ego eight ej ek el ele elect
elem element elements elf elif ell ella elle eller else em email emb embed emit emp empty en enable
enabled enc encode encoded encoding end ende ended ending endpoint ends ener energy eng engine enh ens
ensure ent enter entities entity entre entries entry ents enum env environment ep epoch eq equ equal
equals er era err error errors ers es esc escape ese esp especially ess est este et etc eth ett eu ev
eval even event events ever every evt ex example exc except exception exec execute exist existing exists
exit exp expand expect expected expl export exports expr express expression ext extend extension
extensions external extr extra extract ey fa fab fac face faces fact factor factory fail failed failure
fake fall falls false family fan far fare fast father fd fe feat feature features fed fee feed fel fen
fer fetch fi field fields fig figure fil file filename files fill filled film filter filters fin final
find finish finished finite fire first fish fit five fix fixed fl flag flags flash flat flex float floor
flow flu flush fly fmt fn fo focus fol fold folder folk follow fon font foo food foot for force forced
fore form format formation formed former forming forms fort forward found four fp fr frag fragment frame
frames framework fre free frequency friend friendly from front fs ft fu ful full fully fun func function
functions fund fur future ga gain gal game gan gang gar gas gate ge ged gel gem geme gen gender gener
general generate generated generator generic gent geometry ger ges gest get gets gew gi girl git gl glass
gle glob global go god going gold good google got goto gr gra grad grade grades graduate gram grand graph
graphics grav gray gre green gren grid gro ground group groups grow gu guard guid gun gy ha hab had hal
half hall halt ham han hand handle handler hang har hard has hash hat have he head headed header headers
heading heads health heap heart height hel held hell help helper hem hen her here hero hes het hex hf hi
hid hidden hide high hill him hind hint hip hire his hist history hit ho hol hold holder holds hole hom
home hon hood hook hooks hop hor horizontal horn host hot hour house hover how hr href html htt http
https hub hum human hung hus hw hy hyper ib ic ice ich icon id ide idea ident identifier identity idi
idle ids idx ie if ig ign ignore ih ii ik il ill ils im imag image images img imm immer imp impl
implement import important in inc inch incl include includes including ind inde indent index indices inf
info information ing ingen inherit init initial initialize initialized inject ink inline inn inner inode
input inputs ins insert inst install instance instr int inte integer integr intent inter interest
interface intern internal interpret interrupt interval into intr inv invalid invoke io ion ip ir iron is
iss issue issues ist it item items iter iterator its iv iz ja jack jan jar java je jer jet jo job join
joint jour journal jours joy js json ju jud just ka kan kar ke keep keeping ker kernel key keys keyword
kg ki kil kill kin kind king kit kl klass kle km kn know known ko kol kom kon kv kw kwargs la lab label
labels lad lag lambda lan land lands lane lang language lap larg large las last lat late latest lav law
lay layer layers layout lb le leading leaf lean lear learn learning lease leave lect led left leg legal
len length les less let lets lett letter lev level li lib library lic license licenses lie life lig light
lights lik like lim limit limited limits lin line linear lined lines ling link linked links list lista
listed listen listener lists lit liter literal liv live ll lo load loaded loader loading loads loc local
locale location lock locked log logger logging login logo logs lon long look looking lookup loop lord los
loss lot love low lower lp lu lung ly lying ma mac machine mad made mag mail main major make maker making
mal man managed management manager mand many map mapping maps mar margin mark marker market marks mart
mas mask mass master mat match matched matches mate material math matrix max may maybe mb md me mean
measure med medi media medium mel mem member members memory men ment menu mer merge mes mesh message
messages met meta metadata method methods metric metrics mg mi mic mid middle mil mile mill min mind mine
minute mir miss missing mission mit mitt mix mk ml mm mo mob mobile mock mod modal mode model models
modified module modules moment mon mong monitor mont month mor more mos most mot mother mount mouse mouth
mov move mp ms msg mt mu mul mult multi multip multiple mus must mut mx my mysql na nam name named names
namespace nan nas nat native natural nav navigation nd ne necessary need neg negative ner nested net
network never new news next ng ni nic nice nick nie night nil nit nl nn no nod node nodes nom non none
nor norm normal nos nost not notation note notes notice notification notify nov now np nr ns nu null num
number numer nut nv ny ob obj object objects obs oc occ occup och oct od odd oder of off offset og oh ok
ol old older om on once onde one ones online only ont onto op opacity open opens oper operation
operations operator opp ops opt optim option optional options opts or oral orb ord orden order ordered
orders ore org organ orient orig origin original orth os osc ost ot other others ou ought our ours out
outer output outputs outs ov over overflow override owe own owned owner owners ox oz pa pace pack package
packages packed packet pad padding pag page pages paid pair pal pan panel panic paper par para paragraph
parallel param parameter parameters params pare parent parents park parse parsed parser part partial
partition parts party pas pass password pat patch path paths patient pattern pause pay payload payment pb
pc pci pd pdf pe ped peer peg pel pen pending pent people per percent perf perform period perm permission
pers person personal pert pes pet pg ph phase phone phones photo phrase phys pi pic pick picture pid pie
piece pin pipe pipeline pit pixel pkt pl place placeholder placement plain plan plane plant platform play
player ple plot plug plugin plugins plus pm po pod point pointer points pol policy polit poll poly pon
pool pop por port portal ports pos pose position poss possible post posts pot pow power powered pp pr pre
prec pred predict pref prefix prepare pres present press pressed prev prevent preview previous price prim
primary prime print printf prints priority priv private pro prob probe proc process processing processor
prod produ product production products prof profile profit program progress project projects prom proof
prop properties property props prot protected proto protocol prototype prov provider proxy ps psy pt ptr
pu pub public publish published pull pur push put px py python qu quad qual quality quant quarters que
quel quer query quest question queue quick quot quote ra rac rad radio radius rag rage raid raise raising
ram ran rand random range rank rap ras rat rate rated rating ratio raw ray raz rb rc re reach react read
reader ready real reason reb rec reck recogn record records rect red reddit redirect reduce ref refer
reference reflect refresh reg regex region register registry regular reject rel related relation relative
release rem remark remote remove removed ren rend render rent rep repeat replace reply repo report
repository req requ request requests require required res resent reset resolve resolved resource
resources resp respect respond respons response rest restore result results resume ret retry return
returns retval rev reverse review rh rhs ri rib ric rice rich rid ride rif rig right rim ring rip ris
rise rit river rm ro road rob rock rod role roll rolled rolling rom room rooms root rose rot rotation
rough round route router routes row rows rs rt ru rub rug rule rules rum run runner running runtime rust
rv rx ry sa safe sal sam same sample samples san sap sat save saved say sb sc scalar scale scan scar
scene sch sched schedule schema scheme school science scope score scr screen script scripts scroll sd se
sea search season sec second secondary seconds secret sect section sections secure security sed see seed
seek seen seg segment sel select selected selection selector self selling sem sen send sender sensor sent
sep seq sequ sequence ser serial serie series serv serve server servers service services ses session set
sets setting settings setup seven sex sf sh sha shadow shake shall shape share shared she sheet shell
shift shine ship ships shirt shit shop shops shore short shot shots should show si sid side sig sign
signal signature signed sil sim simple sin since sing single site six size sizeof sk ski skill skin skip
sky sl slave sleep slice slide slot sm small smart sn snap snapshot snd so soap soc social sock socket
soft sol sole solid som some something son sort sound source sources sp space span spe spec special
specific spect speed spell spin spir spl split spot spring sq sql square src ss st sta stable stack staff
stage stairs stance stand standard standing star start stat state statement states static station stats
status std ste stead step steps ster stick sto stock stone stood stop storage store storm story str stre
stream strict stride string strings strip stroke strong struct structure stub stud student sty style
styles su sub subject submit subscription subset substr success successful such suite sum summary sun sup
super support supported sur sure surface sv sw swap switch sy sym symbol syn sync sys system sz ta tab
table tables tag tags tail take tal talk tan tar target task tasks tax tb tc tcp td te team tech techn
teen tele tem temp template templates ten tenant tensor ter term termin terra test testing tests tex text
texture tf th than that the theme then ther there they thing think third this though thread threads three
threshold through throw thumb thy ti tick tid ties til tile tim time timeout timer times timestamp tiny
tip tit title tm tmp to toggle tok token tokens tom ton tons too tool tools top topic tor torch tot total
touch town tp tr tra trace track tract train trained training trait trans transaction transfer transform
transition translate translation transport tre tree tri trigger trim true try ts tt tu tuple turn tv tw
two tx txt ty typ type typeof types ub ud ui uid uint ul ult um uma un una unc und undefined under une
uniform union unique unit units unity unknown unlock uno uns unsigned unt unter until unused up update
updated upload upp upper ur urg uri url us usage usb use used user username users uses using uso ut utf
util utils utter uuid va val valid validate validation value values van var vari variable variables
variant vars vas ve vec vector veh vel ven vendor vent venue ver verb verify vers verse version versions
vert vertex vertical very vest vet vez vi via vid video view views vil vin vir virt virtual vis visible
vision visit vl vm vo voice void vol volt volume vor vote vr vs vy wa wait wake walk wall wallet wand
want war ward ware warn warning was watch water wave way ways we weak wealth wear web wed week weight
weights well wen wer were west wh what wheel when where which while white who why wid wide widget width
wie will win wind window windows wing wire wise with without wo woman won wood wor word words work worker
workers working works world worth worthy wp wr wrap wrapper write writer writing written www wx wy xml ya
yard ye year yes yo you your yy za ze zero zip zo zone zoom zu zw
"""

#: Letters and signs beyond ASCII that are one token each.
SINGLE_LETTERS: Final = (
    "¡¢£¦§©ª«®°±²³µ¶·¹º»¿ÁÂÃÇÉÍÓ×Üßàáâãäåæçèéêëìíîïðñòó"
    "ôõöøùúûüýāăąćčđęěğīıłńōőœřśşšţūůźżžưșțαβγεθικλμνοπ"
    "ρστφωАБВГДЕЗИКЛМНОПРСТУФЧЯабвгдежзийклмнопрстуфхцч"
    "шщъыьэюяёіאבדהוחילמנערשתابةتجحخدرزسشصطعفقكلمنهوىيک"
    "یंकतनमरलसहािीेो्াอา้‐‑–—―‘’“”„†•…′″₂€↑→↓−─━═╗╝█░■●"
    "♪、。「」【】あいうえおかがきくけこさしすせそただちっつてでとどなにのはばまみめもやよらりるれわをん"
    "アィイウェエオカキクグコサシジスセタッテデトドパフブプムメュョラリルレロン・ー一万三上下不与专业东两"
    "个中串为主么义之也书了事二于五些交产京人今从他付代以们件价任份企优会传但位体何余作你使例供保信修值停"
    "像元先入全公共关其具内册再写出击分列则初利别到制前力功加务动動包化北区十华单南即历原去县参及反发取变"
    "口只可台右号司合同名后向否含启告员周命和品哈商器四回因国图土在地场址型城基報場填处备复外多大天失头好"
    "如始子字存学安完定实客家容密对导将小少尔就局展山工左已市布常平年并广序库应店度建开异式引张当录形影径"
    "待後得微心必志态思性总息您情意感成我或户所手打找技投报拉持指按换据排接推提播支收改放政效数整文料断新"
    "方族无日时明易星是時景更最月有服期未本机权束条来板构果查标样核格案检模次止正此步段每比民水求江没治法"
    "注活流海消清游点然片版物特率环现理生用由电画界登的监目直相省看真知码确示社票种科秒称移程空立站章端符"
    "第等签简算管箱类系素索组经结给络统编网置老考者而联能自至色节英藏行表装西要见规视角解言計计认议记论设"
    "证评试话询该详语误说请读调象责败账购费资起超路身车转软载辑输达过近还这进连述退送选通速造道邮部都配释"
    "里重量金钮链销错键长開間関门闭问间队阳陆院除集需面音页项预频题额首验黑가간값개게경고과구그기나내는니"
    "다당대도동되된드들라래러력로료를름리만면문미번보복부분상색서성세수스습시식아야어에여열오요용우위으은"
    "을음의이인일입작장재전정제지째터트하한할해호화환️！（），－．：；？～�"
)
