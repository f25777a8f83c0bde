"""Every reason for which a pass leaves a candidate alone. The codes are stable: scripts and tests may rely on them."""

REASONS: dict[str, str] = {
    # canonicalize
    "axis_not_zero": "The gather does not take whole rows along axis 0 without batch dimensions.",
    "compiled_by_xla": "XLA compiles this call as a whole (jit_compile=True), so the lookups inside stay as they are.",
    "handle_not_traceable": "Which variable is read is decided while the graph runs.",
    "ids_depend_on_write": "The ids depend on a write of the table that follows the read.",
    "not_a_variable": "The rows come from a constant or from a TensorFlow 1 reference variable.",
    "other_control_flow": "The read of the table and the gather are in different branches or loops.",
    "other_device": "The read of the table and the gather are on different devices.",
    "table_is_cast": "The whole table is cast before rows are gathered.",
    "unordered_write": "A write of the table is not ordered against the read, so the result depends on timing already.",
    "would_form_cycle": "Keeping the order of reads and writes would close a cycle.",
    "write_in_other_control_flow": "A write that follows the read of the table is in another branch or loop.",
    # embedding_packing
    "after_queue": "Its ids come out of a queue that another lookup may feed: as one op they would wait for ever.",
    "batch_dims": "The gather has batch dimensions.",
    "dtype_not_supported": "There is no packed kernel for rows of this dtype, or none that adds as TensorFlow does.",
    "fed": "The caller feeds the result of the lookup.",
    "ids_dtype": "The ids are neither int32 nor int64.",
    "no_ids": "Its ids have a dimension of 0, beside one that is not known: no row is looked up, ever.",
    "no_kernel": "This build has no packed kernel for the device.",
    "remote_device": "The table lives in another process, where picasso-tf may not be loaded.",
    "single_lookup": "It has no fellow, feeds no concatenation, and its table fits the cache: nothing to gain.",
    # pooling_packing
    "gradient_needed": "Something else, such as a gradient that is not packed, reads what is summed.",
    "ragged_reduction": "It reduces rows of a table as ragged tensors do, in a form that packed lookups do not know.",
    "row_shape": "The rows of the table are no vectors of a known width.",
    "rows_changed": "Rows of a table are changed before they are combined, in a way that packed lookups do not know.",
    "rows_on_device": "On a GPU: how many rows it gives is not known in host memory, and each step would wait for it.",
    "segment_reduction": "It combines rows of a table by an op that packed pooled lookups do not know.",
    "sharded_table": "Rows of several variables are brought together in a way that packed lookups do not know.",
    "weighted_form": "Rows of a table are multiplied by weights and combined in a way that packed lookups do not know.",
    # cross_packing
    "string_cross": "The cross gives strings, which packed crosses do not: they give hashes.",
    # feature_packing
    "no_instruction": "Packed transforms have no instruction for this op.",
    "not_elementwise": "Its operands are not one feature and scalars, or it has a form that packed transforms lack.",
    "parsed_unread": "It parses features that nobody reads. They stay: their dtypes and sizes are checked anyway.",
    "string_split": "It splits strings, which stays as it is; what is computed from the parts can be packed.",
    "strings_leave": "Something else than packed transforms reads its strings, or its operands may differ in shape.",
    # cross_packing, feature_packing, indicator_packing
    "single_transform": "It has no fellow: nothing to gain.",
    # update_packing
    "duplicates_apply_in_turn": "It applies each duplicate id in turn, which packed updates do not.",
    "not_an_update": "It assigns a value that the old one has no part in.",
    "read_between_updates": "Something reads the variable between two of its updates.",
    "shared_variable": "Another update under the same rule reads or writes the same variable.",
    "single_update": "It has no fellow and is a single operation: nothing to gain.",
    "unknown_shape": "The shape of the variable is not known.",
    "update_arithmetic": "It is no arithmetic on rows that packed updates know.",
    # xla_open
    "not_optimized": "TensorFlow does not optimize the function of this call, so nothing in it could be packed.",
    "constant_seed": "XLA draws other random numbers than TensorFlow from a constant seed, so the call stays compiled.",
    "only_compiled": "It holds an op that only XLA can run.",
    # xla_close
    "nothing_to_compile": "No part of the opened function is worth a call into XLA.",
    # any pass
    "out_of_fuel": "The limit on rewrites (`max_rewrites`) was reached.",
}
