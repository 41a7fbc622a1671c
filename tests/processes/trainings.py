"""Trainings that write their logs in several ways, and end as they are told."""

WRITERS = {
    "held": """
file = open(place + ".jsonl", "a", buffering=1)
def log(row): file.write(json.dumps(row) + "\\n")
""",
    "reopened": """
def log(row):
    with open(place + ".jsonl", "a") as file: file.write(json.dumps(row) + "\\n")
""",
    "tee": """
tee = subprocess.Popen(["tee", place + ".log"], stdin=-1, stdout=subprocess.DEVNULL)
os.dup2(tee.stdin.fileno(), 1)
tee.stdin.close()
said, sys.stdout = os.dup(2), os.fdopen(1, "w", buffering=1)
def log(row):
    print(f"step {row['step']}/900: loss {row['loss']:.4f}" if "step" in row else "max_steps: 900")
""",
    "tensorboard": """
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
events = EventFileWriter(place)
def log(row):
    if "step" in row:
        value = Summary.Value(tag="loss", simple_value=row["loss"])
        events.add_event(Event(step=row["step"], wall_time=time.time(), summary=Summary(value=[value])))
        events.flush()
""",
    "wandb": """
import wandb
run = wandb.init(mode="offline", dir=place, settings=wandb.Settings(console="off", silent=True))
def log(row):
    run.config.update(row["config"]) if "config" in row else run.log({"loss": row["loss"]}, step=row["step"])
""",
    "trainer_state": """
rows = []
def log(row):
    if "step" not in row: return
    rows.append(row)
    os.makedirs(place, exist_ok=True)
    with open(place + "/trainer_state.json", "w") as file:
        json.dump({"log_history": rows, "global_step": row["step"], "max_steps": 900}, file)
""",
}
WRITERS["hugging_face"] = f"""
os.makedirs(place + "/runs")
place += "/runs/now"{WRITERS["tensorboard"]}
place, log_events = place.removesuffix("/runs/now"), log
{WRITERS["trainer_state"]}
log_state = log
def log(row):
    log_events(row)
    log_state(row)
"""
"""Kinds of writers: code that defines `log` for rows of a log at `place`."""

TRAINING = """
import json, os, subprocess, sys, time
place = sys.argv[1]
said = 1
{writer}
log({{"config": {{"max_steps": 900}}}})
step = 0
while True:
    for step in range(step + 1, step + 21):
        log({{"step": step, "loss": 2 / step}})
    os.write(said, b"logged\\n")
    if not sys.stdin.readline(): break
{end}
"""
KILLED = "os.kill(os.getpid(), {})"
