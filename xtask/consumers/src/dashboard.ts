// The types of a dashboard, as Grafana publishes them. What is checked is appended below, each value with its type, so
// that the compiler rejects fields that are unknown, missing or of another type.
import type { Dashboard, FieldConfig, Panel, RowPanel } from '@grafana/schema';
import type {
  FieldConfig as LinesFieldConfig,
  Options as LinesOptions,
} from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
import type { Options as StatOptions } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type { Dataquery } from '@grafana/grafana-foundation-sdk/prometheus';

// A type as JSON has it: an enumeration of texts is a union of these texts.
type Json<T> = unknown extends T ? T
  : T extends string ? `${T}`
  : T extends number | boolean | null | undefined ? T
  : T extends (infer Item)[] ? Json<Item>[]
  : T extends object ? { [Key in keyof T]: Json<T[Key]> }
  : never;

// Panel leaves open what depends on its plugin; here it is closed.
type PanelOf<Type, Options, Custom> = Omit<Panel, 'fieldConfig' | 'options' | 'targets' | 'type'> & {
  type: Type;
  options: Options;
  fieldConfig: { defaults: Omit<FieldConfig, 'custom'> & { custom?: Custom }; overrides: never[] };
  targets: Omit<Dataquery, '_implementsDataqueryVariant'>[];
};

type Frame = Json<Omit<Dashboard, 'panels'>>;
type Row = Json<RowPanel>;
type TimeSeries = Json<PanelOf<'timeseries', LinesOptions, LinesFieldConfig>>;
type Stat = Json<PanelOf<'stat', StatOptions, never>>;

