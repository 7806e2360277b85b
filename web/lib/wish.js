// What an entry of a waiting list asks for, in words: "2 places, next to each other, Balcony".  `t` has the texts wish...;
// `typeName(id)` is the name of a ticket type.

export function wishText({ best_available: best, areas }, t, typeName = (id) => id) {
  const [area, wanted] = Object.entries(areas ?? {})[0] ?? [];
  const types = best ? best.types : typeof wanted === 'object' ? wanted : null;
  const n = best ? best.quantity : types ? Object.values(types).reduce((sum, each) => sum + each, 0) : wanted;
  return [
    t(best?.accessible ? 'wishAccessible' : 'wishPlaces', { n }),
    best && n > 1 && t(best.adjacent ? 'wishTogether' : 'wishApart'),
    ...(best ? [best.section, best.category, best.tier] : [area]),
    ...Object.entries(types ?? {}).filter(([, each]) => each > 0).map(([type, each]) => t('wishType', { n: each, type: typeName(type) })),
  ].filter(Boolean).join(', ');
}
