// translate: '->' is no operator
class CThing
  {
public:
   int               x;
  };
void OnStart()
  {
   CThing thing;
   thing->x=1;
  }
