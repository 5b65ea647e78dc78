# SPDX-License-Identifier: Apache-2.0
"""The public names of wandb 0.31.0, of its runs and of its media. A name that this module does not define says once that it is not recorded; one
that is not here does not exist. tests/python/with_wandb.py compares the lists with the package."""

MODULE = frozenset('''
    AlertLevel Api Artifact ArtifactTTL Audio Classes CommError Config Error EvalTable Graph Histogram Html Image
    JoinedTable Molecule Object3D Plotly Run Settings Table UsageError Video agent agents alert analytics annotations
    api apis attach box3d catboost config controller data_types define_metric ensure_configured env errors finish gym
    helper init integration join jupyter keras lightgbm link_model log log_artifact log_model login mark_preempting
    patched pin_config_keys plot plot_table profiler proto require restore run sacred sagemaker_auth save sdk setup
    sklearn summary sweep teardown tensorboard tensorflow termerror termlog termsetup termwarn trigger unwatch
    use_artifact use_model util visualize wandb wandb_agent wandb_lib wandb_sdk wandb_torch watch xgboost
'''.split())

RUN = frozenset('''
    alert config config_static define_metric dir disabled display entity finish finish_artifact group id job_type
    link_artifact link_model log log_artifact log_code log_model mark_preempting name notes offline path
    pin_config_keys project project_url restore resumed save settings start_time starting_step status step sweep_id
    sweep_url sync_dir tags to_html unwatch upsert_artifact url use_artifact use_model watch write_logs
'''.split())

MEDIA = frozenset('''
    EXTS MAX_ARTIFACT_ROWS MAX_DIMENSION MAX_ITEMS MAX_LENGTH MAX_ROWS add_column add_computed_columns add_data
    add_row all_boxes all_captions all_masks bind_to_run captions cast durations encode file_is_set from_json
    get_column get_dataframe get_index get_media_subdir guess_mode has_been_logged image index_ref init_from_json
    inject_head is_bound iterrows path_is_reference resolve_ref sample_rates seq_to_json set_fk set_pk to_data_array
    to_json type_mapping with_suffix
'''.split())
