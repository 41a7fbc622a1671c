PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE runs (
    id      TEXT PRIMARY KEY,   -- format:path
    path    TEXT NOT NULL,
    format  TEXT NOT NULL,
    state   BLOB NOT NULL,      -- cursor, histories, book; opaque here
    updated REAL NOT NULL
) STRICT;
INSERT INTO runs VALUES('jsonl:/srv/runs/train.jsonl','/srv/runs/train.jsonl','jsonl',X'fd377a585a000004e6d6b446020021010c0000008f98419ce0493707955d0045a989861405afaaf550a8164b9acb7be4f70eae4e83c95749cb45febd261f5e5eb093da0aff60513fa44f9f1957164116b6f33f3f20585daaace33ddfb1c4e0fad3338d8fa092f69b5f00154cf46404d43b149d333024d8d7f9cfef60336b33e60b76022d482721f0c57a0e0763e982d82f26ee06e87ae5fb85cdd93163048d980aa16991c0118e2080d586a9c5ef94339eaccb34fd18a35cf6b7debd4c7bfc5f246f9634189822c53a643db121a4381e016b7bf452cff419832322bd5fcee87a92281beb64c07584b96bf4b1884d4875b0a5540dad4c5222fe15c60d04b50dabd2e7cae44c4ea5963280fe65e194d272ad5bb3e9395bbc61f0a66c64585e50e304989fae1006f0b5b05c7be21cb7c501ab9ea78c76475133c657c0a28844471c8886449e947311d6bba0b307c29c7255331e0e9baa90f3d6351a2d947e78b870d0736695e88417c2b45dc072a04425c9985ab308d5a3ac93ebcfab2f30bbd47c9305160825ca453b59742fb8d29b0651208c93170b5352086284cdf7d77b75bea9ccdabfa141c8a46292b2dbeb9f2cce6b7e2341a42a798ae586d33a131baf3cb9cd0b3dd4b346238db9418dcafeb612afa4c72963c8f59c400f59829d5f345f32d6dc974158406319970412d7a36c544dd4fb29f9298d86cfb6a02d8f41ac89efeb7bc3452e1453e45aced540a8d35bbdda9839db941d1e43821b957947b691c3f25bb74c21e088b8d9795bb2f17f74ef48b812202b71285a180db30f118262bd1d8a7e9bcd59b79725f27334861daca6b52f655047b2badfe3f1d6d90559f7ca4048918802d917426abc312d412324e908f0f4378829d9709e35d2c54e76111df1b1e76f5ce30c37ff93d23862fb0af1d83bb8e82168a05a4e798f502bdf5e06a8683dbc57b8b6c61061807aa2003d4b88fbf152cea3e6573454da5e2af11b8fdb55c15c44a89f42355a41f71d22046a4981b141d70b54067f18628c81d95963225aa87e9e08a25ea134dfbd5cb970d62c355a4a89766b00ba157f5d7613e85b64e0e916c05bc893a99b5e93ad039fed55d86f81620aa90add0932d5b9ac73d67a5ba6d3c995e2f3f725da99f8c4a78784496e6b376fc92f5e436dee02d515da00ff370692a8c533090fbc736f713c30c35c1ed6b056b0161660cf12a57416a0c9edcb57ee644ffa4eb0fda5a3a04406a8f40ed231cfbc490b98d4ff334d539bedae2faec6ee4f1b6a04d4b2100a464742c8081faa093a0f595e2ce8306ac49f9c0203843fa09489bfcceabe91e47340db58de2b3c1a0a50d17e94758d21f044a9762ad7bab0366eb54eea8f4f7a7ff113d6cf9c2205075c32a49737f6cd84bb94dcbe621cdb21d48b967c9262034a2208836a0abb8e1bc223fd646c8ce34fafaecfbd88b40d67b4f3ed5cdc722920e664fdc26fde7d53caa5cc1561fbf5eb496758c24ec0ae912f1a90d2e8edee52753ab3e63698833c99ddaac2073894739faf1fbfcf15cc0fdf0f212267849ee1ceb44ad01a4075d2ad6338d48039cd843683b7472d3a49195c6f00b0f5f93a4e4cf10eb6e485794c2277da605574b4577bcfc061ffc90724906cd1d1013d668f96b4def6ac89132e1ba5d3608a846edba662784882496665b0ca200431f80e061e13412548412f38dd8aef61b8382d47e0acbe715fe05ce342ca5c2968e1c8caa54f16b8528350eed5fa78b87b4d40485b0f1b58a72e05a7ae478366131f13553d7e1acf42ec2ce093e806d0165b883f5bc3df914cb8a311defe914e2f665b3cf4472c8690fac9a2c8832b6f51fb4b547f8369228bcc6129f7c6969bee23eb80bac62e917d9a442c3c7fe4303a18671ded0ee03fd756e5a5c98f19023aaf56e4ae54556a50d1513860f19c054995cb5d23b3dca968c0bb2cd2a16874fcb7bec91355252bda879a76201d31b37d01e6baf541bc63e9146fa9ce62b7185c62e94b6bbde8a7b6db8be957878639fdbe05489af497e319abee8dc7f20382bfd93ea6918ad0d50d7270354c7def58ac0f6e81a3f1967fe07ff24a5fcffb6f4eb4d236cd236d15f66c69625bed8db3313aab3777eb805bd6d55a8acf66ebe98c5e520b44ec9363381a9f29b36d2f296f0f028e66df4e2474d1587a13997361c788129d66205d321daeb08ac43da460430146e340dd70c1921308213149daa0ca6da0c4e7f0e8225bf072afdd9c2b4e79ffe1f120c526a80370de23554aab2b0c448553433029fd792d9603392d386b9e63a770475a907b5c55d677cff1aa3b285c1743a2a097ae81eb02ae2ce4c25a8d51b9359e8bccf399c7aea8f3d986e47a8de6677809c29467c4722a507e83013f684efbeeec9b8fcc8d796539d9487cf205a66bb97b7ea14261992f8b6419ed6c4d67fcd01abb49f9f8e556ab7a5af9591a25dca0250fe49465dcf82f6392668282b6590521236836d22e3130e9b9bdbdb6eaa54eae321da75b077c7f242759831fb987c880d893a39a7d3e40dc21eedec28fa9260deb291a98e87d4d01726f60c3e0fe447622af898c15be042c0579e5c93de66013f5b159ad22ee4deb66c2e35e8252f925add1ae2d6678b9e729a81b3b8f4903155d17c581824c1d8c56decce15f105f8cd5001271006b3b2b68e8bc5642dbddd493b09fa116a9a4559cc971abf9abe5448bad82f97a2366108187cc56eb27f7ef659e7132d1c48ddb8d12cb03672d8a8881a1a8e0c3da765609fa7438bc6e0f16c70000000000a86974c5ff16a53e0001b10fb892010076b8d9afb1c467fb020000000004595a',1795497997.6886134147);
CREATE TABLE stopped (
    run    TEXT PRIMARY KEY,    -- as in runs; it may be none that was ever committed
    path   TEXT NOT NULL,
    reason TEXT NOT NULL,       -- why it is not judged
    since  REAL NOT NULL
) STRICT;
CREATE TABLE incidents (
    id        TEXT PRIMARY KEY,
    run       TEXT NOT NULL,
    open      INTEGER NOT NULL,
    updated   REAL NOT NULL,
    incident  TEXT NOT NULL, /* the whole incident as JSON */
    finding   TEXT AS (CASE WHEN json_valid(incident) THEN
        json_array(json_extract(incident, '$.detector'),
            coalesce(nullif(json_extract(incident, '$.signal'), ''), json_extract(incident, '$.tag'))) END),
    silence   TEXT AS (CASE WHEN json_valid(incident) THEN CASE WHEN
        json_extract(incident, '$.evidence.runs_silent') THEN
        json_extract(incident, '$.evidence.place', '$.evidence.since') END END)
) STRICT;
INSERT INTO incidents VALUES('d0b317c76295db4d','jsonl:/srv/runs/train.jsonl',1,1795497997.6886134147,'{"id": "d0b317c76295db4d", "run": "jsonl:/srv/runs/train.jsonl", "stream": "train.jsonl", "attempt": 1, "detector": "non-finite-metric", "severity": 3, "maturity": "stable", "signal": "loss", "tag": "loss", "onset_step": 50, "onset_time": 1767000050.0, "fired_step": 50, "fired_time": 1767000050.0, "summary": "loss is NaN; the last finite value was 1.51", "evidence": {"value": null, "seen": "NaN", "last": 1.51, "before": 1.6, "name": "loss", "needed": 2, "least": 1.51}, "causes": [{"id": "GE-nan", "score": 0.9, "because": "", "supposes": []}, {"id": "A-nan-debug", "score": 0.046, "because": "", "supposes": []}, {"id": "A-nan-data", "score": 0.031, "because": "", "supposes": []}, {"id": "A-nan-explode", "score": 0.023, "because": "", "supposes": []}], "cited": ["GE-nan", "A-nan-debug", "A-nan-data", "A-nan-explode", "O13"], "state": "escalated", "resolved_step": null, "last_step": 59, "last_time": 1767000059.0, "findings": 10, "returns": 0, "asked_once": false, "inhibited_by": null, "gone": false, "variant": "broken", "latest": ""}');
CREATE TABLE outbox (
    number         INTEGER PRIMARY KEY,  -- the order in which notifications were decided
    key            TEXT NOT NULL,        -- idempotency key
    sink           TEXT NOT NULL,
    incident       TEXT NOT NULL,
    urgency        INTEGER NOT NULL,     -- the incident's severity; 0 where the notification says that it is over
    body           TEXT NOT NULL,        -- fields of a Notification as JSON
    created_at     REAL NOT NULL,
    attempts       INTEGER NOT NULL DEFAULT 0,
    waited_seconds REAL NOT NULL DEFAULT 0,  -- the pauses after the attempts, added up
    state          TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'failed')),
    error          TEXT,
    settled_at     REAL,
    batch          TEXT NOT NULL DEFAULT '',  -- leaves in one message with the others of this batch
    held           INTEGER NOT NULL DEFAULT 0,  -- whether it waits until the first look at its run is done
    run            TEXT NOT NULL DEFAULT '',
    UNIQUE (key, sink)
) STRICT;
INSERT INTO outbox VALUES(1,'65fbce2fb05c8fe34dc5d58e922d80da','terminal','d0b317c76295db4d',2,'{"key": "65fbce2fb05c8fe34dc5d58e922d80da", "event": "firing", "run": {"run": "train.jsonl", "path": "/srv/runs/train.jsonl", "framework": null, "place": "/srv/runs/train.jsonl", "host": "trainer", "planned_steps": null, "world_size": null}, "incident": {"id": "d0b317c76295db4d", "run": "jsonl:/srv/runs/train.jsonl", "stream": "train.jsonl", "attempt": 1, "detector": "non-finite-metric", "severity": 2, "maturity": "stable", "signal": "loss", "tag": "loss", "onset_step": 50, "onset_time": 1767000050.0, "fired_step": 50, "fired_time": 1767000050.0, "summary": "loss is NaN; the last finite value was 1.51", "evidence": {"value": null, "seen": "NaN", "last": 1.51, "before": 1.605, "name": "loss", "needed": 2, "least": 1.51}, "causes": [{"id": "GE-nan", "score": 0.9, "because": "", "supposes": []}, {"id": "A-nan-debug", "score": 0.046, "because": "", "supposes": []}, {"id": "A-nan-data", "score": 0.031, "because": "", "supposes": []}, {"id": "A-nan-explode", "score": 0.023, "because": "", "supposes": []}], "cited": ["GE-nan", "A-nan-debug", "A-nan-data", "A-nan-explode", "O13"], "state": "firing", "resolved_step": null, "last_step": 50, "last_time": 1767000050.0, "findings": 1, "returns": 0, "asked_once": false, "inhibited_by": null, "gone": false, "variant": "broken", "latest": ""}, "catalogue": [{"id": "GE-nan", "title": "An operation has no finite value or gradient", "fix": "Run some steps with `torch.autograd.set_detect_anomaly(True)`, which names the operation that made the first NaN.", "check": "See which was first: a loss that is NaN before any gradient is the forward pass, a gradient before the loss the backward."}, {"id": "A-nan-debug", "title": "NaN of an unknown source", "fix": "Run the steps before the first NaN with `torch.autograd.set_detect_anomaly(True)` on a single device.", "check": "Log loss and gradient norm at each step: which of them is NaN first tells the forward from the backward pass."}, {"id": "A-nan-data", "title": "Empty or malformed samples give NaN", "fix": "Drop samples without a valid label or of length zero, and assert that inputs are finite before the forward pass.", "check": "Run the batch of the first NaN again with fresh weights: NaN again means that the data are at fault."}, {"id": "A-nan-explode", "title": "The loss explodes before it becomes NaN", "fix": "Clip the gradient norm at 1.0, lower the learning rate two- to tenfold, and lengthen the warm-up.", "check": "Look at the ten points before the first NaN: a gradient norm that grew tenfold, or a loss that doubled."}], "also_open": [], "first_onset": [50, 1767000050.0], "excerpts": []}',1795497997.4821982383,1,0.0,'sent',NULL,1795497997.7110114097,'over at 1795497997.4901109',0,'jsonl:/srv/runs/train.jsonl');
INSERT INTO outbox VALUES(2,'41182f9fee9f32ac1a18f21ce26ed448','terminal','d0b317c76295db4d',3,'{"key": "41182f9fee9f32ac1a18f21ce26ed448", "event": "escalated", "run": {"run": "train.jsonl", "path": "/srv/runs/train.jsonl", "framework": null, "place": "/srv/runs/train.jsonl", "host": "trainer", "planned_steps": null, "world_size": null}, "incident": {"id": "d0b317c76295db4d", "run": "jsonl:/srv/runs/train.jsonl", "stream": "train.jsonl", "attempt": 1, "detector": "non-finite-metric", "severity": 3, "maturity": "stable", "signal": "loss", "tag": "loss", "onset_step": 50, "onset_time": 1767000050.0, "fired_step": 50, "fired_time": 1767000050.0, "summary": "loss is NaN; the last finite value was 1.51", "evidence": {"value": null, "seen": "NaN", "last": 1.51, "before": 1.6, "name": "loss", "needed": 2, "least": 1.51}, "causes": [{"id": "GE-nan", "score": 0.9, "because": "", "supposes": []}, {"id": "A-nan-debug", "score": 0.046, "because": "", "supposes": []}, {"id": "A-nan-data", "score": 0.031, "because": "", "supposes": []}, {"id": "A-nan-explode", "score": 0.023, "because": "", "supposes": []}], "cited": ["GE-nan", "A-nan-debug", "A-nan-data", "A-nan-explode", "O13"], "state": "escalated", "resolved_step": null, "last_step": 51, "last_time": 1767000051.0, "findings": 2, "returns": 0, "asked_once": false, "inhibited_by": null, "gone": false, "variant": "broken", "latest": ""}, "catalogue": [{"id": "GE-nan", "title": "An operation has no finite value or gradient", "fix": "Run some steps with `torch.autograd.set_detect_anomaly(True)`, which names the operation that made the first NaN.", "check": "See which was first: a loss that is NaN before any gradient is the forward pass, a gradient before the loss the backward."}, {"id": "A-nan-debug", "title": "NaN of an unknown source", "fix": "Run the steps before the first NaN with `torch.autograd.set_detect_anomaly(True)` on a single device.", "check": "Log loss and gradient norm at each step: which of them is NaN first tells the forward from the backward pass."}, {"id": "A-nan-data", "title": "Empty or malformed samples give NaN", "fix": "Drop samples without a valid label or of length zero, and assert that inputs are finite before the forward pass.", "check": "Run the batch of the first NaN again with fresh weights: NaN again means that the data are at fault."}, {"id": "A-nan-explode", "title": "The loss explodes before it becomes NaN", "fix": "Clip the gradient norm at 1.0, lower the learning rate two- to tenfold, and lengthen the warm-up.", "check": "Look at the ten points before the first NaN: a gradient norm that grew tenfold, or a loss that doubled."}], "also_open": [], "first_onset": [50, 1767000050.0], "excerpts": []}',1795497997.4821982383,1,0.0,'sent',NULL,1795497997.7110114097,'over at 1795497997.4901109',0,'jsonl:/srv/runs/train.jsonl');
CREATE TABLE receivers (               -- those that did not take the last notification
    sink         TEXT PRIMARY KEY,
    failures     INTEGER NOT NULL,       -- in a row
    next_attempt REAL NOT NULL
) STRICT;
CREATE TABLE sent (                    -- the last notification of each kind, for as long as its incident
    incident TEXT NOT NULL,
    sink     TEXT NOT NULL,
    event    TEXT NOT NULL,
    at       REAL NOT NULL,
    severity INTEGER NOT NULL,
    findings INTEGER NOT NULL,
    number   INTEGER NOT NULL DEFAULT 0, -- the order in which they were decided
    PRIMARY KEY (incident, sink, event)
) STRICT, WITHOUT ROWID;
INSERT INTO sent VALUES('d0b317c76295db4d','terminal','escalated',1795497997.4821982383,3,2,2);
INSERT INTO sent VALUES('d0b317c76295db4d','terminal','firing',1795497997.4821982383,2,1,1);
CREATE TABLE receipts (                -- what a receiver holds of an incident
    incident TEXT NOT NULL,
    sink     TEXT NOT NULL,
    at       REAL NOT NULL,
    thread   TEXT NOT NULL,              -- where its first message stands, if the receiver says so
    body     TEXT,                       -- its last notification as JSON; NULL once the incident is over
    PRIMARY KEY (incident, sink)
) STRICT, WITHOUT ROWID;
CREATE TABLE decisions (
    number   INTEGER PRIMARY KEY,
    at       REAL NOT NULL,
    run      TEXT NOT NULL,
    incident TEXT NOT NULL,
    detector TEXT NOT NULL,
    sink     TEXT NOT NULL,
    event    TEXT NOT NULL,
    reason   TEXT NOT NULL
) STRICT;
INSERT INTO decisions VALUES(1,1795497997.4821982383,'jsonl:/srv/runs/train.jsonl','d0b317c76295db4d','non-finite-metric','terminal','firing','first-notification');
INSERT INTO decisions VALUES(2,1795497997.4821982383,'jsonl:/srv/runs/train.jsonl','d0b317c76295db4d','non-finite-metric','terminal','escalated','escalated');
CREATE TABLE silences (
    id         TEXT PRIMARY KEY,
    run        TEXT NOT NULL,
    detector   TEXT NOT NULL,
    until      REAL NOT NULL,
    reason     TEXT NOT NULL,
    created_at REAL NOT NULL,
    incident   TEXT NOT NULL DEFAULT ''  -- the only one that it is about
) STRICT;
CREATE TABLE feedback (
    incident TEXT PRIMARY KEY,
    detector TEXT NOT NULL,
    verdict  TEXT NOT NULL CHECK (verdict IN ('useful', 'false-alarm')),
    note     TEXT NOT NULL,
    at       REAL NOT NULL
) STRICT;
CREATE TABLE health (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL              -- JSON
) STRICT;
INSERT INTO health VALUES('watch','{"looked_at": 1795497997.6901793, "runs": 1}');
CREATE INDEX incidents_by_time ON incidents (open, updated);
CREATE INDEX incidents_by_finding ON incidents (finding);
CREATE INDEX incidents_by_silence ON incidents (silence) WHERE silence IS NOT NULL;
CREATE INDEX outbox_due ON outbox (sink, incident, number) WHERE state = 'pending';
CREATE INDEX outbox_failed ON outbox (sink, incident) WHERE state = 'failed';
CREATE INDEX outbox_settled ON outbox (state, settled_at) WHERE state != 'pending';
CREATE INDEX sent_flapping ON sent (incident) WHERE event = 'flapping';
CREATE INDEX decisions_by_time ON decisions (at);
COMMIT;
