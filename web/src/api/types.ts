import type { components } from './schema';

type Schemas = components['schemas'];

export type Summary = Schemas['Summary'];
export type Report = Schemas['Report'];
export type Run = Schemas['Run'];
export type Agent = Schemas['Node'];
export type Task = Schemas['Task'];
export type Turn = Schemas['Turn'];
export type FullTurn = Schemas['ToldTurn'];
export type Span = Schemas['Span'];
export type Wait = Schemas['Wait'];
export type Usage = Schemas['Usage'];
export type Envelope = Schemas['Envelope'];
export type Receipt = Schemas['Receipt'];
export type Topic = Schemas['Topic'];
export type Artifact = Schemas['Artifact'];
export type Approval = Schemas['Approval'];
export type Asked = Schemas['Asked'];
export type LogEvent = Schemas['Event'];
export type Delta = Schemas['Delta'];
export type Begun = Schemas['Begun'];

export type Diff = Schemas['Diff'];
export type DiffFile = Diff['files'][number];
export type Project = Schemas['Project'];
export type Wanted = Schemas['Wanted'];
